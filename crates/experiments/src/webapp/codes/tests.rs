use super::*;
use std::collections::HashSet;

/// Three lines of Japan Post's list (in which it claims no copyright), reordered, with one code twice.
const LIST: &str = "\u{feff}\
01101,\"064  \",\"0640941\",\"ホッカイドウ\",\"サッポロシチュウオウク\",\"アサヒガオカ\",\"北海道\",\"札幌市中央区\",\"旭ケ丘\",0,0,1,0,0,0\r
13101,\"100  \",\"1000001\",\"トウキョウト\",\"チヨダク\",\"チヨダ\",\"東京都\",\"千代田区\",\"千代田\",0,0,0,0,0,0\r
01101,\"060  \",\"060-0000\",\"ホッカイドウ\",\"サッポロシチュウオウク\",\"イカニ\",\"北海道\",\"札幌市中央区\",\"以下に, 掲載\"\r
13101,\"100  \",\"1000001\",\"トウキョウト\",\"チヨダク\",\"ベツ\",\"東京都\",\"千代田区\",\"別\"\r
";

fn refused(list: &[u8]) -> String {
    let error = read(list).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    error.to_string()
}

#[test]
fn published_list_is_read_and_sorted() {
    let towns = read(LIST.as_bytes()).unwrap();
    let short: Vec<(&str, u64, &str)> =
        towns.iter().map(|t| (std::str::from_utf8(&t.code).unwrap(), t.number, &*t.name)).collect();
    let expected = [
        ("0600000", 3, "以下に, 掲載"),
        ("0640941", 1, "旭ケ丘"),
        ("1000001", 2, "千代田"),
        ("1000001", 4, "別"),
    ];
    assert_eq!(short, expected);
    assert_eq!(&*towns[2].kana, "トウキョウト チヨダク チヨダ");
}

#[test]
fn invalid_line_error_has_its_number() {
    let line = |text: &str| format!("{LIST}{text}\n");
    for (text, says) in [
        ("1,2,3", "line 5: 3 columns"),
        ("1,2,123456,a,b,c,d,e,f", "line 5: the third column is not a postal code"),
        ("1,2,12345678,a,b,c,d,e,f", "line 5: the third column is not a postal code"),
        ("1,2,１２３４５６７,a,b,c,d,e,f", "line 5: the third column is not a postal code"),
        ("1,2,1234567,a,b,c,,e,f", "line 5: column 7 is empty"),
        ("1,2,1234567,a,b,c,d,e,\"f\tg\"", "line 5: column 9 contains control characters"),
    ] {
        let error = refused(line(text).as_bytes());
        assert!(error.contains(says), "{text}: {error}");
    }
    let error = refused(line(&format!("1,2,1234567,a,b,c,d,e,{}", "長".repeat(601))).as_bytes());
    assert!(error.contains("line 5: column 9 has 601 characters"), "{error}");
    // Shift_JIS, the other encoding in which Japan Post offers the list.
    let other = [b"1,2,1234567,a,b,c,\x96\x6b\x8a\x43\x93\xb9,e,f".as_slice(), LIST.as_bytes()].concat();
    assert!(refused(&other).contains("line 1: column 7 is not UTF-8"));
    assert!(refused(b"").contains("contains no postal codes"));
    let error = Codes::get(&Source::File("/nowhere/at/all.csv".into())).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all.csv cannot be read"), "{error}");
}

#[test]
fn generated_codes_are_sorted_and_distinct() {
    for count in [1, 2, 12, 13, 1_000, 120_000] {
        let towns = generate(7, count);
        assert_eq!(towns.len() as u64, count);
        assert!(towns.windows(2).all(|pair| pair[0].code < pair[1].code), "{count}");
        assert!(towns.iter().all(|town| !town.prefecture.is_empty() && !town.name.is_empty()));
    }
    let prefectures: HashSet<_> = generate(7, 120_000).into_iter().map(|town| town.prefecture).collect();
    assert_eq!(prefectures.len(), 47);
}

#[test]
fn maximum_number_of_codes_is_generated() {
    let codes: Vec<_> = generate(1, MAX).into_iter().map(|town| town.code).collect();
    assert!(codes.windows(2).all(|pair| pair[0] < pair[1]));
}

#[test]
fn prefix_search_returns_exactly_its_towns() {
    let codes = Codes::get(&Source::Generated { seed: 3, count: 5_000 }).unwrap();
    for town in codes.towns.iter().step_by(97) {
        for length in 1..=DIGITS {
            let prefix = &town.code[..length];
            let found = codes.of_prefix(prefix);
            let expected = codes.towns.iter().filter(|town| town.code.starts_with(prefix)).count();
            assert_eq!(found.len(), expected);
            assert!(found.iter().all(|town| town.code.starts_with(prefix)));
        }
    }
    assert_eq!(codes.of_prefix(b"00000").len(), 0);
    assert_eq!(codes.of_prefix(b"").len(), 5_000);
}

#[test]
fn the_first_towns_of_a_seed_never_change() {
    let show = |t: &Town| {
        format!(
            "{} {} {}{}{} {}",
            String::from_utf8_lossy(&t.code),
            t.number,
            t.prefecture,
            t.city,
            t.name,
            t.kana
        )
    };
    let first: Vec<String> = generate(1, 120_000)[..3].iter().map(show).collect();
    assert_eq!(first.join("\n"), include_str!("../../../golden/webapp_towns_seed1.txt").trim_end());
}

#[test]
fn digest_distinguishes_lists() {
    let digests: HashSet<u64> = [(1, 100), (2, 100), (1, 101)]
        .map(|(seed, count)| Codes::get(&Source::Generated { seed, count }).unwrap().digest)
        .into();
    assert_eq!(digests.len(), 3);
    assert!(digests.iter().all(|digest| *digest < 1 << 53));
}
