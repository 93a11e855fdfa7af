//! Units of measurement: symbol → singular and plural name.
//! Case matters (mW and MW), and British English spells some units differently.

use crate::word_table::{find, forms};

/// "km" → "kilometers"; with a rate "km/h" → "kilometers per hour". `one` asks for the singular.
pub(super) fn unit_name(symbol: &str, one: bool, british: bool) -> Option<String> {
    if let Some(name) = simple(symbol, one) {
        return Some(in_spelling(name, british));
    }
    let (over, under) = symbol.split_once('/')?;
    let over = if over.is_empty() { "" } else { simple(over, one)? };
    let under = per(under)?;
    Some(in_spelling(&format!("{over} per {under}"), british).trim_start().to_owned())
}

/// Whether a symbol may be read as a unit after a space. "in" and "bar" may not: they are also words.
pub(super) fn stands_apart(symbol: &str) -> bool {
    !matches!(
        symbol,
        "in" | "a" | "d" | "C" | "F" | "B" | "b" | "x" | "t" | "N" | "J" | "bar" | "yr" | "pt"
    )
}

fn simple(symbol: &str, one: bool) -> Option<&'static str> {
    let symbol = symbol.trim_end_matches('.');
    let (singular, plural) = forms(find(UNITS, symbol)?);
    Some(if one { singular } else { plural })
}

fn per(symbol: &str) -> Option<&'static str> {
    let period = find(PERIODS, symbol).or_else(|| simple(symbol, true));
    period.or_else(|| PER_WORDS.split_whitespace().find(|known| *known == symbol))
}

const PERIODS: &str = "
    s second, sec second, second second, min minute, minute minute, h hour, hr hour, hour hour,
    d day, day day, wk week, week week, mo month, month month, yr year, y year, year year";

const PER_WORDS: &str = "user person night token request seat unit page word";

/// "meter" and "liter" are "metre" and "litre" in British English.
fn in_spelling(name: &str, british: bool) -> String {
    if british { name.replace("meter", "metre").replace("liter", "litre") } else { name.to_owned() }
}

const UNITS: &str = "
    % percent, ‰ per mille, ° degree/degrees, °C degree Celsius/degrees Celsius,
    ℃ degree Celsius/degrees Celsius, ºC degree Celsius/degrees Celsius,
    °F degree Fahrenheit/degrees Fahrenheit, ℉ degree Fahrenheit/degrees Fahrenheit,
    nm nanometer/nanometers, µm micrometer/micrometers, μm micrometer/micrometers,
    um micrometer/micrometers, mm millimeter/millimeters, cm centimeter/centimeters,
    dm decimeter/decimeters, m meter/meters, km kilometer/kilometers,
    mm² square millimeter/square millimeters, cm² square centimeter/square centimeters,
    m² square meter/square meters, km² square kilometer/square kilometers,
    cm³ cubic centimeter/cubic centimeters, m³ cubic meter/cubic meters,
    dm³ cubic decimeter/cubic decimeters,
    m2 square meter/square meters, km2 square kilometer/square kilometers,
    m3 cubic meter/cubic meters, m/s² meter per second squared/meters per second squared,
    m/s^2 meter per second squared/meters per second squared, in inch/inches, ″ inch/inches,
    ft foot/feet, yd yard/yards, yds yard/yards, mi mile/miles, ha hectare/hectares,
    mph mile per hour/miles per hour, mpg mile per gallon/miles per gallon,
    kt knot/knots, kts knot/knots, kph kilometer per hour/kilometers per hour,
    kmh kilometer per hour/kilometers per hour, ng nanogram/nanograms, µg microgram/micrograms,
    μg microgram/micrograms, mcg microgram/micrograms, mg milligram/milligrams, g gram/grams,
    kg kilogram/kilograms, t ton/tons, lb pound/pounds, lbs pound/pounds, oz ounce/ounces,
    ml milliliter/milliliters, mL milliliter/milliliters, cl centiliter/centiliters,
    dl deciliter/deciliters, dL deciliter/deciliters, l liter/liters, L liter/liters,
    gal gallon/gallons, qt quart/quarts, tbsp tablespoon/tablespoons, tsp teaspoon/teaspoons,
    ns nanosecond/nanoseconds,
    µs microsecond/microseconds, μs microsecond/microseconds, us microsecond/microseconds,
    ms millisecond/milliseconds, s second/seconds, sec second/seconds, secs second/seconds,
    min minute/minutes, mins minute/minutes, h hour/hours, hr hour/hours, hrs hour/hours,
    yr year/years, yrs year/years, Hz hertz, kHz kilohertz, MHz megahertz, GHz gigahertz,
    THz terahertz, bit bit/bits, kbit kilobit/kilobits, Kbit kilobit/kilobits,
    Mbit megabit/megabits, Gbit gigabit/gigabits, kbps kilobit per second/kilobits per second,
    Mbps megabit per second/megabits per second, Gbps gigabit per second/gigabits per second,
    kB kilobyte/kilobytes, KB kilobyte/kilobytes, MB megabyte/megabytes, GB gigabyte/gigabytes,
    TB terabyte/terabytes, PB petabyte/petabytes, KiB kibibyte/kibibytes, MiB mebibyte/mebibytes,
    GiB gibibyte/gibibytes, TiB tebibyte/tebibytes, mV millivolt/millivolts, V volt/volts,
    kV kilovolt/kilovolts, MV megavolt/megavolts, µA microamp/microamps, mA milliamp/milliamps,
    A amp/amps, kA kiloamp/kiloamps, mAh milliamp hour/milliamp hours, Ah amp hour/amp hours,
    mW milliwatt/milliwatts, W watt/watts, kW kilowatt/kilowatts, MW megawatt/megawatts,
    GW gigawatt/gigawatts, Wh watt hour/watt hours, kWh kilowatt hour/kilowatt hours,
    MWh megawatt hour/megawatt hours, Ω ohm/ohms, kΩ kiloohm/kiloohms, MΩ megaohm/megaohms,
    µF microfarad/microfarads, nF nanofarad/nanofarads, J joule/joules, kJ kilojoule/kilojoules,
    MJ megajoule/megajoules, kcal kilocalorie/kilocalories, cal calorie/calories, N newton/newtons,
    Nm newton meter/newton meters, Pa pascal/pascals, hPa hectopascal/hectopascals,
    kPa kilopascal/kilopascals, MPa megapascal/megapascals, bar bar/bars, mbar millibar/millibars,
    atm atmosphere/atmospheres, mmHg millimeter of mercury/millimeters of mercury,
    inHg inch of mercury/inches of mercury, psi P S I,
    dB decibel/decibels, dBFS decibel full scale/decibels full scale, rpm R P M,
    bpm beat per minute/beats per minute, fps frame per second/frames per second, tok token/tokens,
    tokens token/tokens, px pixel/pixels, pt point/points, dpi D P I, MP megapixel/megapixels,
    ppm part per million/parts per million, mol mole/moles, lm lumen/lumens, lx lux, x times,
    × times";

#[cfg(test)]
mod tests {
    use super::*;

    fn check(symbol: &str, one: &str, many: &str) {
        assert_eq!(unit_name(symbol, true, false).as_deref(), Some(one), "{symbol}");
        assert_eq!(unit_name(symbol, false, false).as_deref(), Some(many), "{symbol}");
    }

    #[test]
    fn units_that_others_get_wrong() {
        check("MV", "megavolt", "megavolts");
        check("mV", "millivolt", "millivolts");
        check("mA", "milliamp", "milliamps");
        check("ml", "milliliter", "milliliters");
        check("km/h", "kilometer per hour", "kilometers per hour");
        check("°C", "degree Celsius", "degrees Celsius");
        check("Mbit/s", "megabit per second", "megabits per second");
        check("kWh", "kilowatt hour", "kilowatt hours");
        check("GB/s", "gigabyte per second", "gigabytes per second");
        assert_eq!(unit_name("km", false, true).as_deref(), Some("kilometres"));
        assert_eq!(unit_name("and", false, false), None);
        assert_eq!(unit_name("and/or", false, false), None);
    }

    #[test]
    fn no_symbol_is_there_twice() {
        crate::word_table::assert_keys_differ(&[UNITS]);
    }
}
