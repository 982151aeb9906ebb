//! Named values in an order that means something.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// Values by name, in the order of tables. Written out as an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered<T, Name = String>(pub Vec<(Name, T)>);

impl<T, Name> Default for Ordered<T, Name> {
    fn default() -> Ordered<T, Name> {
        Ordered(Vec::new())
    }
}

impl<T, Name: AsRef<str>> Ordered<T, Name> {
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T, Name> FromIterator<(Name, T)> for Ordered<T, Name> {
    fn from_iter<I: IntoIterator<Item = (Name, T)>>(values: I) -> Ordered<T, Name> {
        Ordered(values.into_iter().collect())
    }
}

impl<T: Serialize, Name: AsRef<str>> Serialize for Ordered<T, Name> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in self.iter() {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
