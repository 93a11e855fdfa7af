//! The table of English letter-to-sound rules: letters, context, sounds.
//! Order matters: for each letter the first matching rule is used, and the last rule always matches.

use std::sync::LazyLock;

/// `letters` sound as `sounds` if `left` stands before them and `right` after them.
///
/// In both contexts, `#` is one or more vowels (y is one of them), `^` one consonant, `.` a voiced consonant, `+` one
/// of e, i, y, and `_` the edge of the word. Only `left` has `:`, any number of consonants (also none). Only `right`
/// has `%`, an ending up to the edge of the word (e, ed, er, ers, es, ely, ing, ings). Any other character stands for
/// itself. `left` is matched from its end backwards.
pub(super) struct Rule {
    pub(super) left: &'static str,
    pub(super) letters: &'static str,
    pub(super) right: &'static str,
    pub(super) sounds: &'static str,
}

pub(super) static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| TABLE.split_whitespace().filter_map(parse).collect());

/// Reads a rule that is written `left[letters]right=sounds`.
fn parse(rule: &'static str) -> Option<Rule> {
    let (left, rest) = rule.split_once('[')?;
    let (letters, rest) = rest.split_once(']')?;
    let (right, sounds) = rest.split_once('=')?;
    Some(Rule { left, letters, right, sounds })
}

const TABLE: &str = "
    _[a]_=ə [augh]t=ɔ [au]=ɔ [aw]=ɔ [ai]r=ɛ [ai]=A [ay]=A _[are]_=ɑɹ [are]_=ɛɹ [arr]=æɹ [ar]#=ɛɹ
    w[ar]=ɔɹ #:[ard]_=əɹd #:[ar]_=əɹ [ar]=ɑɹ w[a]s=ʌ w[a]t=ɑ [all]_=ɔl [al]k=ɔ [alm]_=ɑm
    #:[ally]_=əli #:[al]_=əl [able]_=Abəl #:[age]_=ɪʤ [ang]+=Anʤ [a]tion=A [a]ste=A [a]^%=A
    [a]^le_=A [a]^ia=A [ae]=i [aa]=ɑ #:[an]_=ən #:[ant]_=ənt #:[ance]_=əns #:^[a]_=ə [a]_=ɑ
    _[a]^#=ə [a]=æ
    _:[e]_=i #:[ely]_=li #:t[ed]_=ᵻd #:d[ed]_=ᵻd #:.[ed]_=d #:^[ed]_=t #:s[es]_=ᵻz #:z[es]_=ᵻz
    #:x[es]_=ᵻz #:c[es]_=ᵻz #:g[es]_=ᵻz #:ch[es]_=ᵻz #:sh[es]_=ᵻz #:.[es]_=z #:^[es]_=s #:[e]_=
    #:[eful]_=fəl #:[eless]_=ləs #:[ement]_=mənt #:[eness]_=nəs #:^[er]_=əɹ #:^[ers]_=əɹz
    #:^[el]_=əl #:^[en]_=ən #:^[ent]_=ənt #:^[ence]_=əns [eigh]=A [ei]gn=A [eir]=ɛɹ c[ei]=i [ei]=I
    [ey]_=i [ey]=A [ear]ch=ɜɹ [ear]n=ɜɹ [ear]=ɪɹ [ea]d_=ɛ [ea]th_=ɛ [ea]=i [eer]=ɪɹ [ee]=i [eau]=O
    [eo]=iO r[ew]=u l[ew]=u s[ew]=u j[ew]=u ch[ew]=u [ew]=ju [eu]=ju [err]=ɛɹ [er]#=ɪɹ [er]=ɜɹ
    [e]^e_=i _:[e]^ia=i _r[e]^#=i _pr[e]^#=i _d[e]^#=ɪ _b[e]^#=ɪ [e]=ɛ
    _[i]_=I [igh]=I [ign]_=In [ing]_=ɪŋ [ings]_=ɪŋz [ier]_=iəɹ [ied]_=id [ies]_=iz [ie]=i
    [iou]s=iə [io]=iO [ia]=iə [irr]=ɪɹ [ir]#=Iɹ [ir]=ɜɹ [ique]_=ik [ind]_=Ind [ild]_=Ild
    [i]ble=ə #:[ile]_=Il #:[ine]_=in #:[ite]_=It #:[ive]_=ɪv #:[ice]_=ɪs [ize]=Iz [ise]_=Iz
    [i]^%=I [i]_=i [i]=ɪ
    [ough]t=ɔ [ough]=O [ould]_=ʊd [our]=ɔɹ [ous]_=əs [oun]=Wn [ou]s=W [ou]t=W [ou]d=W
    [ou]=u [oor]=ɔɹ [ook]=ʊk [ood]_=ʊd [oo]=u [oar]=ɔɹ [oa]=O [oi]=Y [oy]=Y [own]=Wn [ow]_=O
    [ow]=W [oe]=O [ore]_=ɔɹ #:^[or]_=əɹ w[or]=ɜɹ [or]=ɔɹ [old]=Old [olk]=Ok [oll]_=Ol
    [ost]_=Ost #:^[on]_=ən [o]_=O [o]^%=O [o]^ia=O [o]=ɑ
    q[u]=w _[un]^=ʌn g[u]#= [urr]=ɜɹ [ure]_=jʊɹ [ur]#=jʊɹ [ur]=ɜɹ [uy]=I [ue]_=u [ui]=u #:[ul]_=əl
    #:[um]_=əm #:[us]_=əs r[u]^#=u l[u]^#=u j[u]^#=u s[u]^#=u [u]^#=ju [u]_=u [u]=ʌ
    _[y]=j _:[y]_=I #:[y]_=i [yr]=ɪɹ [y]#=j _:[y]^#=I [y]^e_=I [y]=ɪ
    m[b]_= [bb]=b [b]=b
    _[chr]=kɹ s[ch]=k [cch]=k [ch]^=k [ch]=ʧ [cia]=ʃə [cious]_=ʃəs [cc]+=ks [cc]=k [ck]=k s[c]+=
    [c]+=s [c]=k
    [tch]=ʧ s[ten]_=ən s[tle]_=əl [tion]=ʃən [tia]=ʃə [tious]_=ʃəs [ture]=ʧəɹ [th]er_=ð
    [th]=θ [tt]=t [t]=t
    [dge]=ʤ [dg]+=ʤ [dd]=d [d]=d
    [ff]=f [f]=f
    _[gn]=n [gn]_=n [gh]_= [gh]=ɡ [gg]=ɡ _[ge]t=ɡɛ _[gi]v=ɡɪ [g]+=ʤ [g]=ɡ
    _[hon]est=ɑn _[hour]=Wəɹ [h]#=h [h]=
    [j]=ʤ
    _[kn]=n [kh]=k [kk]=k [k]=k
    [ll]=l #:^[le]_=əl #:^[les]_=əlz #:^[led]_=əld [l]=l
    [mm]=m [mn]_=m [m]=m
    [nn]=n [ng]_=ŋ [ng]^=ŋɡ [ng]+=nʤ [n]k=ŋ [n]=n
    _[ps]=s _[pn]=n [ph]=f [pp]=p [p]=p
    [qu]e_=k [q]=k
    [rh]=ɹ [rr]=ɹ [r]=ɹ
    [sch]=ʃ [sh]=ʃ #[sion]=ʒən [ssion]=ʃən [sion]=ʃən [ssure]=ʃəɹ #[sure]_=ʒəɹ [ss]=s _[s]=s
    #:.[s]_=z #[s]#=z #[s]m_=z [s]=s
    [vv]=v [v]=v
    _[wr]=ɹ _[who]=hu [wh]=w [w]=w
    _[x]=z [x]=ks
    [zz]=z [z]=z";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_read_and_each_letter_has_one_that_always_matches() {
        assert_eq!(RULES.len(), TABLE.split_whitespace().count());
        for letter in 'a'..='z' {
            let last = RULES.iter().rfind(|rule| rule.letters.starts_with(letter));
            let rule = last.expect("a rule");
            let has_context = !rule.left.is_empty() || !rule.right.is_empty();
            assert!(!has_context && rule.letters.len() == 1, "{letter}");
        }
    }
}
