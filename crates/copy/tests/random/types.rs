//! Random types of each engine, with literals of their values.

use super::draw::{Draw, Form, Literal, hex};

/// A random type of an engine: its declaration, the form of its values, and literals of them.
pub fn column(engine: &str, draw: &mut Draw) -> (String, Form, Literal) {
    match engine {
        "postgres" => postgres(draw),
        "sqlite" => sqlite(draw),
        engine => mysql(engine == "mariadb", draw),
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// One of `odd`, or more often a usual value.
fn odd(draw: &mut Draw, odd: &[&str], usual: impl FnOnce(&mut Draw) -> String) -> String {
    quoted(&if draw.one_in(8) { draw.of(odd).to_owned() } else { usual(draw) })
}

fn with(
    declared: impl Into<String>,
    form: Form,
    literal: impl Fn(&mut Draw) -> String + 'static,
) -> (String, Form, Literal) {
    (declared.into(), form, Box::new(literal))
}

fn postgres(draw: &mut Draw) -> (String, Form, Literal) {
    let digits = draw.below(7) as u32;
    let most = 1 + draw.below(60);
    match draw.below(30) {
        0 => with("smallint", Form::Number, |d| d.whole(16, true).to_string()),
        1 => with("integer", Form::Number, |d| d.whole(32, true).to_string()),
        2 => with("bigint", Form::Number, |d| quoted(&d.whole(64, true).to_string())),
        3 | 4 => {
            let all = 1 + draw.below(45) as u32;
            let after = draw.below(u64::from(all) + 1) as u32;
            with(format!("numeric({all},{after})"), Form::Number, move |d| {
                odd(d, &["NaN"], |d| d.decimal(all - after, after))
            })
        }
        5 => with("numeric", Form::Number, move |d| {
            odd(d, &["NaN", "Infinity", "1e40", "1e-40"], |d| d.decimal(30, 25))
        }),
        6 => with("real", Form::Float32, move |d| {
            odd(d, &["NaN", "-Infinity"], |d| format!("{:e}", d.float32()))
        }),
        7 => with("double precision", Form::Float64, move |d| {
            odd(d, &["NaN", "Infinity"], |d| format!("{:e}", d.float64()))
        }),
        8 => with("boolean", Form::Bool, |d| d.of(&["true", "false"]).to_owned()),
        9 => with(format!("character({most})"), Form::Padded, move |d| quoted(&d.text(most))),
        10 | 11 => with(format!("varchar({most})"), Form::Bytes, move |d| quoted(&d.text(most))),
        12 => with("varchar", Form::Bytes, |d| quoted(&d.text(40))),
        13 => with("text", Form::Bytes, |d| quoted(&d.text(40))),
        14 | 15 => with("bytea", Form::Bytes, |d| format!("'\\x{}'", hex(&d.bytes(30)))),
        16 => with("date", Form::Time, move |d| {
            odd(d, &["infinity", "-infinity", "0044-03-15 BC", "20000-01-31"], Draw::date)
        }),
        17 => with(format!("time({digits})"), Form::Time, move |d| odd(d, &["24:00:00"], |d| d.hour(digits))),
        18 | 19 => with(format!("timestamp({digits})"), Form::Time, move |d| {
            odd(d, &["infinity", "0044-03-15 01:02:03 BC", "20000-01-31 00:00:00"], |d| {
                format!("{} {}", d.date(), d.hour(digits))
            })
        }),
        20 => with(format!("timestamp({digits}) with time zone"), Form::Time, move |d| {
            odd(d, &["-infinity"], |d| format!("{} {}+00", d.date(), d.hour(digits)))
        }),
        21 => with("uuid", Form::Uuid, |d| quoted(&d.uuid())),
        22 => with("json", Form::Json, |d| quoted(&d.json(3).replace("\\u0001", "\\t"))),
        23 => with("jsonb", Form::Json, |d| quoted(&d.json(3))),
        24 => with("inet", Form::Bytes, |d| {
            quoted(&format!("10.{}.{}.7/{}", d.below(256), d.below(256), d.below(33)))
        }),
        25 => with("interval", Form::Bytes, |d| {
            quoted(&format!("{} months {} days {} seconds", d.below(50), d.below(90), d.below(99_999)))
        }),
        26 => with("integer[]", Form::Bytes, |d| {
            quoted(&format!("{{{},NULL,{}}}", d.below(9), d.whole(32, true)))
        }),
        27 => with("text[]", Form::Bytes, |d| {
            format!("ARRAY[{}, NULL, {}]::text[]", quoted(&d.text(9)), quoted(&d.text(9)))
        }),
        28 => {
            let bits = 1 + draw.below(70) as usize;
            with(format!("bit varying({bits})"), Form::Bytes, move |d| {
                format!(
                    "B'{}'",
                    (0..=d.below(bits as u64)).take(bits).map(|_| d.of(&["0", "1"])).collect::<String>()
                )
            })
        }
        _ => with(
            draw.of(&[
                "int4range", "money", "macaddr", "timetz", "point", "\"char\"", "xml", "tsvector", "pg_lsn",
                "oid",
            ]),
            Form::Bytes,
            |_| "NULL".to_owned(),
        ),
    }
}

fn mysql(mariadb: bool, draw: &mut Draw) -> (String, Form, Literal) {
    let digits = draw.below(7) as u32;
    let most = 1 + draw.below(60);
    let utf8 = |text: &str| format!("_utf8mb4 x'{}'", hex(text.as_bytes()));
    // A date that no calendar has, now and then.
    let zero = |usual: String, draw: &mut Draw| {
        quoted(&match draw.below(10) {
            0 => format!("0000-00-00{}", if usual.len() > 10 { " 00:00:00" } else { "" }),
            1 => format!("{}00{}", &usual[..5], &usual[7..]),
            _ => usual,
        })
    };
    match draw.below(30) {
        0 => with("tinyint", Form::Number, |d| d.whole(8, true).to_string()),
        1 => with("smallint unsigned", Form::Number, |d| d.whole(16, false).to_string()),
        2 => with("mediumint", Form::Number, |d| d.whole(24, true).to_string()),
        3 => with("int", Form::Number, |d| d.whole(32, true).to_string()),
        4 => with("int unsigned", Form::Number, |d| d.whole(32, false).to_string()),
        5 => with("bigint", Form::Number, |d| d.whole(64, true).to_string()),
        6 => with("bigint unsigned", Form::Number, |d| d.whole(64, false).to_string()),
        7 | 8 => {
            let all = 1 + draw.below(if mariadb { 60 } else { 65 }) as u32;
            let after = draw.below(u64::from(all.min(30)) + 1) as u32;
            with(format!("decimal({all},{after})"), Form::Number, move |d| d.decimal(all - after, after))
        }
        9 => with("float", Form::Float32, |d| format!("{:e}", d.float32())),
        10 => with("double", Form::Float64, |d| format!("{:e}", d.float64())),
        11 => with(format!("char({most})"), Form::Padded, move |d| utf8(&d.text(most))),
        12 | 13 => {
            let collation = draw.of(&["", " COLLATE utf8mb4_bin", " COLLATE utf8mb4_general_ci"]);
            with(format!("varchar({most}){collation}"), Form::Bytes, move |d| utf8(&d.text(most)))
        }
        14 => with(format!("varchar({most}) CHARACTER SET latin1"), Form::Bytes, move |d| {
            utf8(&d.text(most).replace(['東', '😀'], "ü"))
        }),
        15 => with(draw.of(&["tinytext", "text", "mediumtext", "longtext"]), Form::Bytes, move |d| {
            utf8(&if d.one_in(9) { "a\0b".to_owned() } else { d.text(40) })
        }),
        16 => with(format!("binary({most})"), Form::Bytes, move |d| format!("x'{}'", hex(&d.bytes(most)))),
        17 => with(format!("varbinary({most})"), Form::Bytes, move |d| format!("x'{}'", hex(&d.bytes(most)))),
        18 => with(draw.of(&["tinyblob", "blob", "longblob"]), Form::Bytes, |d| {
            format!("x'{}'", hex(&d.bytes(40)))
        }),
        19 => with("date", Form::Time, move |d| zero(d.date(), d)),
        20 => with(format!("time({digits})"), Form::Time, move |d| {
            if d.one_in(6) {
                quoted(d.of(&["-01:02:03", "838:59:59", "24:00:00"]))
            } else {
                quoted(&d.hour(digits))
            }
        }),
        21 | 22 => with(format!("datetime({digits})"), Form::Time, move |d| {
            zero(format!("{} {}", d.date(), d.hour(digits)), d)
        }),
        23 => with(format!("timestamp({digits}) NULL"), Form::Time, move |d| {
            quoted(&format!(
                "{}-{:02}-{:02} {}",
                1971 + d.below(66),
                1 + d.below(12),
                1 + d.below(28),
                d.hour(digits)
            ))
        }),
        24 => with("year", Form::Number, |d| (1901 + d.below(250)).to_string()),
        25 => with("json", Form::Json, move |d| utf8(&d.json(3))),
        26 => with("enum('a','it''s','ü','')", Form::Bytes, |d| {
            d.of(&["'a'", "'it''s'", "_utf8mb4 x'c3bc'", "''"]).to_owned()
        }),
        27 => with("set('x','y','z')", Form::Bytes, |d| d.of(&["'x'", "'x,z'", "''", "'x,y,z'"]).to_owned()),
        28 => {
            let bits = 1 + draw.below(64) as u32;
            with(format!("bit({bits})"), Form::Number, move |d| d.whole(bits, false).to_string())
        }
        _ if mariadb => match draw.below(2) {
            0 => with("uuid", Form::Uuid, |d| quoted(&d.uuid())),
            _ => with("inet6", Form::Bytes, |d| quoted(d.of(&["::1", "2001:db8::7", "::ffff:10.0.0.1"]))),
        },
        _ => with("point", Form::Bytes, |d| format!("POINT({}, {})", d.below(90), d.below(90))),
    }
}

fn sqlite(draw: &mut Draw) -> (String, Form, Literal) {
    const DECLARED: [&str; 26] = [
        "", "ANYTHING", "INTEGER", "INT", "BIGINT", "TINYINT", "REAL", "DOUBLE", "FLOAT", "NUMERIC",
        "DECIMAL(10,2)", "NUMERIC(5)", "TEXT", "VARCHAR(20)", "CHAR(5)", "CLOB", "BLOB", "BOOLEAN", "DATE",
        "DATETIME", "TIMESTAMP", "DECIMAL_TEXT(30,10)", "DATE_TEXT", "TIME_TEXT(6)", "JSON_TEXT",
        "UUID_TEXT",
    ];
    // A column has values of one kind, or of all.
    let kinds: Vec<u64> = match draw.below(3) {
        0 => (0..13).collect(),
        1 => vec![draw.below(13)],
        _ => vec![draw.below(13), draw.below(13)],
    };
    let digits = draw.below(10) as u32;
    let text = |text: &str| format!("CAST(x'{}' AS TEXT)", hex(text.as_bytes()));
    with(draw.of(&DECLARED), Form::Any, move |d| match d.of(&kinds) {
        0 => d.below(2).to_string(),
        1 => {
            let bits = d.of(&[32, 64]);
            d.whole(bits, true)
        }
        .max(i128::from(i64::MIN) + 1)
        .to_string(),
        2 => format!("{:e}", d.float64()),
        3 => format!("{}.{:02}", d.below(1_000), d.below(100)),
        4 => {
            if d.one_in(20) {
                d.of(&["9e999", "-9e999"]).to_owned()
            } else {
                "1.0".to_owned()
            }
        }
        5 => text(&if d.one_in(9) { "a\0b".to_owned() } else { d.text(30) }),
        6 => format!("x'{}'", hex(&d.bytes(20))),
        7 => text(&d.date()),
        8 => text(&format!("{}{}{}", d.date(), d.of(&[" ", "T"]), d.hour(digits))),
        9 => text(&d.hour(digits)),
        10 => text(&d.json(2)),
        11 => text(&if d.one_in(2) { d.uuid() } else { d.uuid().to_uppercase() }),
        _ => text(&d.decimal(20, 10)),
    })
}
