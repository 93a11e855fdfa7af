//! Defines an enum and the text of each variant in one table.
//! A list of all variants and a table of their texts cannot differ then.

/// An enum with `ALL`, its variants in this order, and the named method, which returns a variant's text.
#[macro_export]
macro_rules! enum_table {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident: $method:ident {
        $($(#[$of_variant:meta])* $variant:ident = $text:literal,)+
    }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$of_variant])* $variant,)+
        }

        impl $name {
            $visibility const ALL: [$name; [$($text),+].len()] = [$($name::$variant),+];

            $visibility fn $method(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    enum_table! {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Season: name {
            /// Cold.
            Winter = "winter",
            Summer = "summer",
        }
    }

    #[test]
    fn a_row_is_a_variant_and_its_text() {
        assert_eq!(Season::ALL, [Season::Winter, Season::Summer]);
        assert_eq!(Season::ALL.map(Season::name), ["winter", "summer"]);
    }
}
