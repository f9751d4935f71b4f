//! Strings of characters and of bytes.

use crate::functions::Body::{Plain, Set};
use crate::functions::{Function, Volatility, bytes, composing, patterns, regexes, strings};
use crate::types::Oid;

#[rustfmt::skip]
functions! { STRINGS:
    2004 "anytextcat" (ANY_NONARRAY TEXT) TEXT, strict stable, Plain(composing::concat2);
    384 "array_to_string" (ANY_ARRAY TEXT TEXT) TEXT, nullable stable, Plain(composing::from_array);
    395 "array_to_string" (ANY_ARRAY TEXT) TEXT, strict stable, Plain(composing::from_array);
    1620 "ascii" (TEXT) INT4, strict immutable, Plain(strings::ascii);
    1810 "bit_length" (BYTEA) INT4, strict immutable, Plain(strings::bit_length);
    1811 "bit_length" (TEXT) INT4, strict immutable, Plain(strings::bit_length);
    884 "btrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::btrim);
    885 "btrim" (TEXT) TEXT, strict immutable, Plain(strings::btrim);
    1372 "char_length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    1381 "char_length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1367 "character_length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    1369 "character_length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1621 "chr" (INT4) TEXT, strict immutable, Plain(strings::chr);
    3058 "concat" (ANY) TEXT, nullable stable variadic, Plain(composing::concat);
    3059 "concat_ws" (TEXT ANY) TEXT, nullable stable variadic, Plain(composing::concat_ws);
    3539 "format" (TEXT ANY) TEXT, nullable stable variadic, Plain(composing::format);
    3540 "format" (TEXT) TEXT, nullable stable, Plain(composing::format);
    872 "initcap" (TEXT) TEXT, strict immutable, Plain(strings::initcap);
    3060 "left" (TEXT INT4) TEXT, strict immutable, Plain(strings::left);
    1317 "length" (TEXT) INT4, strict immutable, Plain(strings::length);
    1318 "length" (BPCHAR) INT4, strict immutable, Plain(strings::length);
    2010 "length" (BYTEA) INT4, strict immutable, Plain(strings::octet_length);
    870 "lower" (TEXT) TEXT, strict immutable, Plain(strings::lower);
    873 "lpad" (TEXT INT4 TEXT) TEXT, strict immutable, Plain(strings::lpad);
    879 "lpad" (TEXT INT4) TEXT, strict immutable, Plain(strings::lpad);
    875 "ltrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::ltrim);
    881 "ltrim" (TEXT) TEXT, strict immutable, Plain(strings::ltrim);
    2311 "md5" (TEXT) TEXT, strict immutable, Plain(strings::md5);
    2321 "md5" (BYTEA) TEXT, strict immutable, Plain(strings::md5);
    720 "octet_length" (BYTEA) INT4, strict immutable, Plain(strings::octet_length);
    1374 "octet_length" (TEXT) INT4, strict immutable, Plain(strings::octet_length);
    1375 "octet_length" (BPCHAR) INT4, strict immutable, Plain(strings::octet_length);
    1404 "overlay" (TEXT TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::overlay);
    1405 "overlay" (TEXT TEXT INT4) TEXT, strict immutable, Plain(strings::overlay);
    849 "position" (TEXT TEXT) INT4, strict immutable, Plain(strings::position);
    1282 "quote_ident" (TEXT) TEXT, strict immutable, Plain(composing::quote_ident);
    1283 "quote_literal" (TEXT) TEXT, strict immutable, Plain(composing::quote_literal);
    1285 "quote_literal" (ANY_ELEMENT) TEXT, strict stable, Plain(composing::quote_literal);
    1289 "quote_nullable" (TEXT) TEXT, nullable immutable, Plain(composing::quote_nullable);
    1290 "quote_nullable" (ANY_ELEMENT) TEXT, nullable stable, Plain(composing::quote_nullable);
    1622 "repeat" (TEXT INT4) TEXT, strict immutable, Plain(strings::repeat);
    2087 "replace" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(strings::replace);
    3062 "reverse" (TEXT) TEXT, strict immutable, Plain(strings::reverse);
    3061 "right" (TEXT INT4) TEXT, strict immutable, Plain(strings::right);
    874 "rpad" (TEXT INT4 TEXT) TEXT, strict immutable, Plain(strings::rpad);
    880 "rpad" (TEXT INT4) TEXT, strict immutable, Plain(strings::rpad);
    876 "rtrim" (TEXT TEXT) TEXT, strict immutable, Plain(strings::rtrim);
    882 "rtrim" (TEXT) TEXT, strict immutable, Plain(strings::rtrim);
    2088 "split_part" (TEXT TEXT INT4) TEXT, strict immutable, Plain(strings::split_part);
    3696 "starts_with" (TEXT TEXT) BOOL, strict immutable, Plain(strings::starts_with);
    376 "string_to_array" (TEXT TEXT TEXT) TEXT_ARRAY, nullable immutable, Plain(composing::to_array);
    394 "string_to_array" (TEXT TEXT) TEXT_ARRAY, nullable immutable, Plain(composing::to_array);
    868 "strpos" (TEXT TEXT) INT4, strict immutable, Plain(strings::position);
    877 "substr" (TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::substring);
    883 "substr" (TEXT INT4) TEXT, strict immutable, Plain(strings::substring);
    936 "substring" (TEXT INT4 INT4) TEXT, strict immutable, Plain(strings::substring);
    937 "substring" (TEXT INT4) TEXT, strict immutable, Plain(strings::substring);
    401 "text" (BPCHAR) TEXT, strict immutable, Plain(strings::rtrim);
    2003 "textanycat" (TEXT ANY_NONARRAY) TEXT, strict stable, Plain(composing::concat2);
    1258 "textcat" (TEXT TEXT) TEXT, strict immutable, Plain(composing::concat2);
    1257 "textlen" (TEXT) INT4, strict immutable, Plain(strings::length);
    878 "translate" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(strings::translate);
    871 "upper" (TEXT) TEXT, strict immutable, Plain(strings::upper);
}

#[rustfmt::skip]
functions! { BYTES:
    2015 "btrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::btrim);
    2011 "byteacat" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::concat);
    1714 "convert_from" (BYTEA NAME) TEXT, strict stable, Plain(bytes::convert_from);
    1717 "convert_to" (TEXT NAME) BYTEA, strict stable, Plain(bytes::convert_to);
    1947 "decode" (TEXT TEXT) BYTEA, strict immutable, Plain(bytes::decode);
    1946 "encode" (BYTEA TEXT) TEXT, strict immutable, Plain(bytes::encode);
    723 "get_bit" (BYTEA INT8) INT4, strict immutable, Plain(bytes::get_bit);
    721 "get_byte" (BYTEA INT4) INT4, strict immutable, Plain(bytes::get_byte);
    6195 "ltrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::ltrim);
    2014 "position" (BYTEA BYTEA) INT4, strict immutable, Plain(bytes::position);
    6196 "rtrim" (BYTEA BYTEA) BYTEA, strict immutable, Plain(bytes::rtrim);
    722 "set_byte" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::set_byte);
    3419 "sha224" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha224);
    3420 "sha256" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha256);
    3421 "sha384" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha384);
    3422 "sha512" (BYTEA) BYTEA, strict immutable, Plain(bytes::sha512);
    2085 "substr" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2086 "substr" (BYTEA INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2012 "substring" (BYTEA INT4 INT4) BYTEA, strict immutable, Plain(bytes::substring);
    2013 "substring" (BYTEA INT4) BYTEA, strict immutable, Plain(bytes::substring);
}

#[rustfmt::skip]
functions! { PATTERNS:
    1660 "bpchariclike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1661 "bpcharicnlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1656 "bpcharicregexeq" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1657 "bpcharicregexne" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    1631 "bpcharlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::like);
    1632 "bpcharnlike" (BPCHAR TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1658 "bpcharregexeq" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1659 "bpcharregexne" (BPCHAR TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
    1569 "like" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::like);
    1571 "like" (NAME TEXT) BOOL, strict immutable, Plain(patterns::like);
    1637 "like_escape" (TEXT TEXT) TEXT, strict immutable, Plain(patterns::like_escape);
    1635 "nameiclike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1636 "nameicnlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1240 "nameicregexeq" (NAME TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1241 "nameicregexne" (NAME TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    858 "namelike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::like);
    859 "namenlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    79 "nameregexeq" (NAME TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1252 "nameregexne" (NAME TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
    1570 "notlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1572 "notlike" (NAME TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    6254 "regexp_count" (TEXT TEXT) INT4, strict immutable, Plain(regexes::count);
    6255 "regexp_count" (TEXT TEXT INT4) INT4, strict immutable, Plain(regexes::count);
    6256 "regexp_count" (TEXT TEXT INT4 TEXT) INT4, strict immutable, Plain(regexes::count);
    6263 "regexp_like" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::like_regex);
    6264 "regexp_like" (TEXT TEXT TEXT) BOOL, strict immutable, Plain(regexes::like_regex);
    3396 "regexp_match" (TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::first_match);
    3397 "regexp_match" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::first_match);
    2763 "regexp_matches" (TEXT TEXT) TEXT_ARRAY, strict immutable, Set(regexes::all_matches);
    2764 "regexp_matches" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Set(regexes::all_matches);
    2284 "regexp_replace" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::replace);
    2285 "regexp_replace" (TEXT TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::replace);
    2767 "regexp_split_to_array" (TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::split_to_array);
    2768 "regexp_split_to_array" (TEXT TEXT TEXT) TEXT_ARRAY, strict immutable, Plain(regexes::split_to_array);
    2765 "regexp_split_to_table" (TEXT TEXT) TEXT, strict immutable, Set(regexes::split_to_table);
    2766 "regexp_split_to_table" (TEXT TEXT TEXT) TEXT, strict immutable, Set(regexes::split_to_table);
    1986 "similar_to_escape" (TEXT TEXT) TEXT, strict immutable, Plain(patterns::similar_to_escape);
    1987 "similar_to_escape" (TEXT) TEXT, strict immutable, Plain(patterns::similar_to_escape);
    2073 "substring" (TEXT TEXT) TEXT, strict immutable, Plain(regexes::substring);
    2074 "substring" (TEXT TEXT TEXT) TEXT, strict immutable, Plain(regexes::substring_similar);
    1633 "texticlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::ilike);
    1634 "texticnlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_ilike);
    1238 "texticregexeq" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::imatches);
    1239 "texticregexne" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::imatches_not);
    850 "textlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::like);
    851 "textnlike" (TEXT TEXT) BOOL, strict immutable, Plain(patterns::not_like);
    1254 "textregexeq" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::matches);
    1256 "textregexne" (TEXT TEXT) BOOL, strict immutable, Plain(regexes::matches_not);
}
