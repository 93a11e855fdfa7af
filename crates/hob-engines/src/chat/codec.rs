//! Values to bytes and back, for what the chat protocol carries: field by field, in order.
//! Both ends are the same binary, so there are no names, no versions and no optional fields.

use crate::frame::{Fields, FrameError};

/// Items of one list; more are garbage.
const ITEMS_MAX: usize = 1 << 20;

pub(super) trait Coded: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// # Errors
    /// The bytes are none that [`Coded::put`] writes.
    fn take(from: &mut Fields<'_>) -> Result<Self, FrameError>;
}

/// All bytes of a payload as one value.
pub(super) fn decode<T: Coded>(mut fields: Fields<'_>) -> Result<T, FrameError> {
    let value = T::take(&mut fields)?;
    fields.end()?;
    Ok(value)
}

pub(super) fn encode(value: &impl Coded) -> Vec<u8> {
    let mut out = Vec::new();
    value.put(&mut out);
    out
}

macro_rules! coded_number {
    ($($type:ident),*) => {$(
        impl Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }

            fn take(from: &mut Fields<'_>) -> Result<$type, FrameError> {
                from.array().map($type::from_le_bytes)
            }
        }
    )*};
}
coded_number!(u8, u32, u64, f32, f64);

/// A structure: its fields in the order given.
macro_rules! coded_struct {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(from: &mut Fields<'_>) -> Result<$type, FrameError> {
                Ok($type { $($field: Coded::take(from)?),* })
            }
        }
    };
}

/// An enum: a byte that says which variant, then its fields.
macro_rules! coded_enum {
    ($type:ident { $($tag:literal $variant:ident $(($($item:ident),*))? $({$($field:ident),*})?),* $(,)? }) => {
        impl Coded for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($type::$variant $(($($item),*))? $({$($field),*})? => {
                        out.push($tag);
                        $($($item.put(out);)*)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn take(from: &mut Fields<'_>) -> Result<$type, FrameError> {
                Ok(match from.u8()? {
                    $($tag => {
                        $($(let $item = Coded::take(from)?;)*)?
                        $($(let $field = Coded::take(from)?;)*)?
                        $type::$variant $(($($item),*))? $({$($field),*})?
                    })*
                    _ => return Err(from.malformed("no variant has this number")),
                })
            }
        }
    };
}
pub(super) use {coded_enum, coded_struct};

impl Coded for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<usize, FrameError> {
        Ok(from.u64()? as usize)
    }
}

impl Coded for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut Fields<'_>) -> Result<bool, FrameError> {
        match from.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(from.malformed("neither yes nor no")),
        }
    }
}

impl Coded for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend(self.as_bytes());
    }

    fn take(from: &mut Fields<'_>) -> Result<String, FrameError> {
        let bytes = from.u64()? as usize;
        let text = str::from_utf8(from.slice(bytes)?);
        text.map(str::to_owned).map_err(|_| from.malformed("it is not UTF-8"))
    }
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut Fields<'_>) -> Result<Option<T>, FrameError> {
        if bool::take(from)? { T::take(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Coded> Coded for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.as_ref().put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<Box<T>, FrameError> {
        T::take(from).map(Box::new)
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|item| item.put(out));
    }

    fn take(from: &mut Fields<'_>) -> Result<Vec<T>, FrameError> {
        let items = from.u64()? as usize;
        if items > ITEMS_MAX {
            return Err(from.malformed("it announces too many items"));
        }
        (0..items).map(|_| T::take(from)).collect()
    }
}

impl<A: Coded, B: Coded> Coded for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Fields<'_>) -> Result<(A, B), FrameError> {
        Ok((A::take(from)?, B::take(from)?))
    }
}
