//! An enum and the text of each variant in one table, so that a list of all variants and a table of their texts cannot
//! differ. Also the fields of a struct that logs show.

/// An enum with `ALL`, its variants in this order, and the named method, which returns a variant's text. If the method is
/// called `name`, `Display` writes it. With `name or Unknown("a thing")`, `FromStr` reads it, and `Unknown` is the error for
/// all other texts.
#[macro_export]
macro_rules! enum_table {
    (@table $(#[$attribute:meta])* $visibility:vis enum $name:ident: $method:ident {
        $($(#[$of_variant:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            $visibility const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            $visibility const fn $method(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident: name $variants:tt) => {
        $crate::enum_table!(@table $(#[$attribute])* $visibility enum $name: name $variants);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident: name or $unknown:ident($what:literal) $variants:tt) => {
        $crate::enum_table!($(#[$attribute])* $visibility enum $name: name $variants);

        #[doc = concat!("The error for a text that is not the name of ", $what, ".")]
        #[derive(Clone, Debug, PartialEq, Eq)]
        $visibility struct $unknown(String);

        impl std::fmt::Display for $unknown {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let [others @ .., last] = $name::ALL.map($name::name);
                write!(f, "'{}' is not {} (expected {} or {last})", self.0, $what, others.join(", "))
            }
        }

        impl std::error::Error for $unknown {}

        impl std::str::FromStr for $name {
            type Err = $unknown;

            fn from_str(name: &str) -> Result<$name, $unknown> {
                let known = $name::ALL.into_iter().find(|known| known.name() == name);
                known.ok_or_else(|| $unknown(name.to_owned()))
            }
        }
    };
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident: $method:ident $variants:tt) => {
        $crate::enum_table!(@table $(#[$attribute])* $visibility enum $name: $method $variants);
    };
}

/// `Debug` for a struct, with these of its fields: texts and secrets do not belong in logs. `field.len()` shows its size.
#[macro_export]
macro_rules! debug_fields {
    ($name:ident: $($field:ident $(.$size:ident())?),+) => {
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    $(.field(stringify!($field), &self.$field$(.$size())?))+
                    .finish_non_exhaustive()
            }
        }
    };
}

#[cfg(test)]
mod tests {
    struct Letter {
        sender: &'static str,
        text: &'static str,
    }

    debug_fields!(Letter: sender, text.len());

    #[test]
    fn a_text_is_shown_as_its_size() {
        let letter = Letter { sender: "me", text: "secret" };
        assert_eq!(format!("{letter:?}"), r#"Letter { sender: "me", text: 6, .. }"#);
    }

    enum_table! {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Season: name or UnknownSeason("a season") {
            /// Cold.
            Winter = "winter",
            Summer = "summer",
        }
    }

    #[test]
    fn a_row_is_a_variant_and_its_text() {
        assert_eq!(Season::ALL, [Season::Winter, Season::Summer]);
        assert_eq!(Season::ALL.map(Season::name), ["winter", "summer"]);
        assert_eq!(Season::ALL.map(|season| season.to_string()), ["winter", "summer"]);
        assert_eq!("summer".parse(), Ok(Season::Summer));
        let unknown = "spring".parse::<Season>().expect_err("no season");
        assert_eq!(unknown.to_string(), "'spring' is not a season (expected winter or summer)");
    }
}
