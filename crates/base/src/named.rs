//! Enums whose variants have names, and names that users and providers choose.

/// Declares an enum with a name for each variant: in JSON, in tables, on the command line. Adds `ALL`, in the order of
/// the variants, and `name`.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $type { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl $type {
            /// All of them, in the order of tables.
            #[allow(dead_code, reason = "a private enum may not need it")]
            $vis const ALL: [$type; [$($name),+].len()] = [$($type::$variant),+];

            /// Its name.
            $vis const fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

/// Declares a name that a user or a provider chose: any text, in JSON as it is.
#[macro_export]
macro_rules! text_name {
    ($(#[$meta:meta])* $vis:vis struct $type:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        $vis struct $type(pub std::sync::Arc<str>);

        impl From<&str> for $type {
            fn from(text: &str) -> $type {
                $type(text.into())
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
