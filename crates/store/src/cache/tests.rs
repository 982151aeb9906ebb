//! Unit tests of the cache: the bytes on disk, the encoding of frames, and a full disk.

use std::fs::File;

use proptest::prelude::*;
use tempfile::tempdir;

use super::entry::{
    Day, EntryHeader, EntryStatus, Field, FrameLocation, ParseResult, Record, RemovalReason, Tag,
};
use super::index::Tables;
use super::index::item_key::ItemKey;
use super::index::items::item;
use super::packs::frame::{self, FrameContent, FrameHeader, FrameHeaderError, PackHeader};
use super::packs::journal_steps::{BatchNonce, BatchStep};
use super::packs::packed::{DecodedHeader, PortableFrame, decode_header, pack};
use super::packs::provenance::EncodedProvenance;
use super::packs::shared_fields::{FieldNumbers, SharedFields};
use super::packs::{compress_body, decode_body};
use super::writing::active_pack::ActivePack;
use super::{CacheSnapshot, Lookup, ModelNames, StepLog, Store};
use crate::digest::{ActionKey, Digest};
use base::units::{Tokens, Usage, Usd};

fn field(text: Option<&str>, content: &str) -> Field {
    Field {
        text: text.map(Digest::hash),
        content: content.into(),
    }
}

fn header() -> EntryHeader {
    EntryHeader {
        kind: Tag(2),
        format: Some(Tag(2)),
        created: 1_790_000_000_123,
        usage: Usage {
            input: Some(Tokens(300)),
            output: Some(Tokens(0)),
            ..Usage::default()
        },
        cost: Some(Usd(0.5)),
        latency_ms: 900,
        place: Digest::hash("place"),
        models: ModelNames {
            requested: None,
            answered: Some("m-1".into()),
        },
        origin: None,
        fields: vec![
            field(None, "numbers"),
            field(Some("m"), "model"),
            field(Some("text"), "prompt p.md"),
        ],
    }
}

fn opened(folder: &std::path::Path) -> Store {
    Store::open(folder, "run", |_| None).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let lines: Vec<&str> = digits
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join("\n")
}

#[test]
fn the_bytes_of_a_frame_are_pinned() {
    let frame = frame::reply(
        ActionKey(Digest::hash("key")),
        &header(),
        &compress_body(b"a body").unwrap(),
    )
    .unwrap();
    insta::assert_snapshot!(hex(&frame), @"
    c566720101000000ab0000000600000006000000f6864749ff8e2bab3b26e0c1
    27002127905539b47eb421de85d554e15f55a446459b52b4517815aafdab0911
    72373f9cb58039a24faf0d79c863a96c9febea64f5a11aa4fbd8c1a28c340201
    ac02000001000001000000000000e03f84072b81e3daf3a9ee913eddf1883859
    dbc9d9043df8cdccd214ee4795198ba1451b01020001036d2d31010c73c40704
    0001000008006e756d6265727300260183d9dab06011479163c7c4d5fa735f91
    1bac86729f56aaa115b7eed2eb66e0226d6f64656c002c01831c6831fdc9a309
    a4c66cc3cb2fa3740a100da8b86d6fe86e9ba40deb50aa1970726f6d70742070
    2e6d6408e1cf026120626f6479
    ");
}

#[test]
fn the_bytes_of_a_pack_header_and_a_record_are_pinned() {
    insta::assert_snapshot!(hex(&PackHeader { id: 3, nonce: 1 }.encode()), @"4345735041434b01030000000100000000000000f8134cbc");
    insta::assert_snapshot!(hex(&record().encode().unwrap()), @"
    010118ac0246517815aafdab091172373f9cb58039a24faf0d79c863a96c9feb
    ea64f5a11aa406015443af0c0e97f60b57f1450f3051247bce8f92565feb6cd6
    50c9369b79f0b43b01456cf7f1bcf2d3dc53ec88b93f05b0053490b07906a459
    b9a7447744bf3bae8202fbd8c1a28c340301ac020000010000000500
    ");
}

fn record() -> Record {
    Record {
        key: ActionKey(Digest::hash("key")),
        location: FrameLocation {
            pack: 1,
            offset: 24,
            head: 300,
            body: 70,
        },
        raw: Digest::hash("a body"),
        raw_len: 6,
        status: EntryStatus::Output {
            out: Digest::hash("out"),
            state: Some(Digest::hash("state")),
            parser: 2,
        },
        created: 1_790_000_000_123,
        kind: Tag(3),
        usage: header().usage,
        cost: None,
        latency_ms: 5,
        format: None,
    }
}

#[test]
fn a_record_takes_200_bytes_in_the_tree_at_most_and_one_of_another_version_is_refused() {
    let long: std::sync::Arc<str> = "x".repeat(400).into();
    let all = Some(Tokens(u64::from(u32::MAX)));
    let usage = Usage {
        input: all,
        cached_input: all,
        cache_write: all,
        output: all,
        reasoning: all,
        ..Usage::default()
    };
    let failed = EntryStatus::Failed {
        class: long.clone(),
        message: long.clone(),
    };
    for status in [
        record().status,
        EntryStatus::Malformed {
            parser: 9,
            fault: long,
        },
        failed,
    ] {
        let record = Record {
            status,
            usage,
            cost: Some(Usd(1e300)),
            latency_ms: 86_400_000,
            ..record()
        };
        let mut tables = Tables::default();
        tables.set_record(record.clone());
        let value = item(&tables, ItemKey::Action(record.key))
            .unwrap()
            .value
            .unwrap();
        assert!(value.len() <= 200, "{}", value.len());
        let found = Record::decode(record.key, &value).unwrap();
        assert_eq!(
            (found.raw, found.location, found.usage),
            (record.raw, record.location, record.usage)
        );
    }
    let bytes = record().encode().unwrap();
    assert_eq!(Record::decode(record().key, &bytes), Some(record()));
    let other = [&[bytes[0] + 1], &bytes[1..]].concat();
    assert_eq!(Record::decode(record().key, &other), None);
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest)
}

/// A frame of version 1 of any kind, and what reading it must give.
fn any_frame() -> impl Strategy<Value = (Vec<u8>, FrameContent)> {
    let key = || digest().prop_map(ActionKey);
    let body = prop::collection::vec(any::<u8>(), 0..300);
    let reply = (key(), body, any::<u64>()).prop_map(|(key, body, created)| {
        let header = EntryHeader {
            created,
            ..header()
        };
        (
            frame::reply(key, &header, &compress_body(&body).unwrap()).unwrap(),
            FrameContent::Reply(header.summary()),
        )
    });
    let parse_result = (key(), digest(), prop::option::of(digest()), ".{0,40}").prop_map(
        |(key, raw, state, fault)| {
            let reading = match state {
                Some(_) => ParseResult::Output {
                    out: raw,
                    state,
                    parser: 4,
                },
                None => ParseResult::Malformed { parser: 4, fault },
            };
            (
                frame::parse_result(key, raw, &reading).unwrap(),
                FrameContent::ParseResult(reading),
            )
        },
    );
    let failure = (key(), ".{0,20}", ".{0,90}").prop_map(|(key, class, message)| {
        let frame = frame::failure(key, &header(), &class, &message).unwrap();
        (
            frame,
            FrameContent::Failure {
                summary: header().summary(),
                class,
                message,
            },
        )
    });
    let counts = prop::collection::vec((digest(), any::<u64>()), 0..20).prop_map(|counts| {
        (
            frame::counts(&counts).unwrap(),
            FrameContent::Counts(counts),
        )
    });
    let touch =
        (any::<u32>(), prop::collection::vec(any::<[u8; 8]>(), 0..20)).prop_map(|(day, keys)| {
            (
                frame::touch(Day(day), &keys).unwrap(),
                FrameContent::Touch {
                    day: Day(day),
                    keys,
                },
            )
        });
    let remove =
        prop::collection::vec((key(), prop::option::of(digest())), 0..20).prop_map(|keys| {
            (
                frame::remove(RemovalReason::Pruned, &keys).unwrap(),
                FrameContent::Remove {
                    why: RemovalReason::Pruned,
                    keys,
                },
            )
        });
    let latest = proptest::collection::vec((digest(), digest().prop_map(ActionKey)), 0..4)
        .prop_map(|places| {
            (
                frame::latest(&places).unwrap(),
                FrameContent::Latest(places),
            )
        });
    let text = (digest(), prop::collection::vec(any::<u8>(), 0..300)).prop_map(|(digest, body)| {
        (
            frame::text(digest, &compress_body(&body).unwrap()),
            FrameContent::Text,
        )
    });
    let step = prop::sample::select(vec![
        BatchStep::Intent,
        BatchStep::Submitted,
        BatchStep::Closed,
    ]);
    let nonce = (any::<u64>(), key())
        .prop_map(|(created, key)| BatchNonce::new(created, std::iter::once(key)));
    let journal = (nonce, step, prop::collection::vec(any::<u8>(), 0..300)).prop_map(
        |(nonce, step, body)| {
            let frame = frame::journal(&(nonce, step), &compress_body(&body).unwrap()).unwrap();
            (frame, FrameContent::Journal(nonce, step))
        },
    );
    prop_oneof![
        reply,
        parse_result,
        failure,
        counts,
        touch,
        remove,
        latest,
        text,
        journal
    ]
}

proptest! {
    #[test]
    fn a_frame_reads_back_as_it_was_written((frame, content) in any_frame()) {
        let header = FrameHeader::decode(&frame).unwrap();
        prop_assert_eq!(&header.content, &content);
        prop_assert_eq!(header.location(0, 0).len(), frame.len() as u64);
        let is_entry = matches!(content, FrameContent::Reply(_) | FrameContent::Failure { .. });
        let entry = decode_header(&header, &frame[..header.head_len as usize], &SharedFields::default());
        prop_assert_eq!(entry.is_some(), is_entry);
    }

    #[test]
    fn a_body_reads_back_as_it_was_written(body in prop::collection::vec(any::<u8>(), 0..5000), repeat in 1..20usize) {
        let body = body.repeat(repeat);
        let frame = frame::reply(ActionKey(Digest::hash("k")), &header(), &compress_body(&body).unwrap()).unwrap();
        let header = FrameHeader::decode(&frame).unwrap();
        let stored = bytes::Bytes::from(frame).slice(header.head_len as usize..);
        prop_assert_eq!(decode_body(&header, stored).unwrap(), body);
    }

    #[test]
    fn a_flipped_bit_in_a_header_is_detected((frame, _) in any_frame(), at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let head = FrameHeader::decode(&frame).unwrap().head_len as usize;
        let mut flipped = frame.clone();
        flipped[at.index(head)] ^= 1 << bit;
        prop_assert!(FrameHeader::decode(&flipped).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Record::decode(ActionKey(Digest::hash("k")), &bytes);
        let _ = EncodedProvenance::decode(&bytes, &SharedFields::default());
        let read = FrameHeader::decode(&bytes);
        prop_assert!(matches!(read, Err(FrameHeaderError::Short(_) | FrameHeaderError::Damaged(_))));
    }

    #[test]
    fn a_frame_that_is_cut_off_says_how_many_bytes_it_needs((frame, _) in any_frame(), keep in 0..88usize) {
        let cut = &frame[..keep.min(frame.len())];
        prop_assert_eq!(FrameHeader::decode(cut), Err(FrameHeaderError::Short(frame::FIXED)));
    }
}

/// Frames of version 1 as a pack gets them.
fn packed(frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let frames = frames
        .into_iter()
        .map(|frame| PortableFrame::read(frame, &SharedFields::default()))
        .collect();
    pack(frames, &mut FieldNumbers::default()).unwrap().frames
}

/// An entry of version 1, like others but for its place and its request.
fn entry(n: u64) -> (EntryHeader, Vec<u8>) {
    let mut header = EntryHeader {
        place: Digest::hash(n.to_le_bytes()),
        ..header()
    };
    header
        .fields
        .insert(1, field(None, &format!("request-{n}")));
    let body = compress_body(b"a body").unwrap();
    let frame = frame::reply(ActionKey(Digest::hash(n.to_le_bytes())), &header, &body).unwrap();
    (header, frame)
}

#[test]
fn the_bytes_of_packed_frames_are_pinned() {
    let key = ActionKey(Digest::hash("key"));
    let reading = ParseResult::Output {
        out: Digest::hash("out"),
        state: None,
        parser: 2,
    };
    let parsed = frame::parse_result(key, Digest::hash("a body"), &reading).unwrap();
    let frames = packed(vec![entry(1).1, parsed.clone(), entry(2).1, parsed]);
    let all: Vec<String> = frames.iter().map(|frame| hex(frame)).collect();
    insta::assert_snapshot!(all.join("\n\n"), @"
    c56672020a805f000308006e756d62657273260183d9dab06011479163c7c4d5
    fa735f911bac86729f56aaa115b7eed2eb66e0226d6f64656c2c01831c6831fd
    c9a309a4c66cc3cb2fa3740a100da8b86d6fe86e9ba40deb50aa1970726f6d70
    7420702e6d6478348087

    c56672020100b7010606f68647491a0d12016999e47689dae5744d2b8c1903fa
    f7ca2886a658150083100ef2c8ee517815aafdab091172373f9cb58039a24faf
    0d79c863a96c9febea64f5a11aa4fbd8c1a28c340201ac020000010000010000
    00000000e03f84071a0d12016999e47689dae5744d2b8c1903faf7ca2886a658
    150083100ef2c8ee01020001036d2d3101f8eaf16b050001000008006e756d62
    657273000a00726571756573742d3100260183d9dab06011479163c7c4d5fa73
    5f911bac86729f56aaa115b7eed2eb66e0226d6f64656c002c01831c6831fdc9
    a309a4c66cc3cb2fa3740a100da8b86d6fe86e9ba40deb50aa1970726f6d7074
    20702e6d64419620796120626f6479

    c566720201005a0606f6864749ea21c7b3c885cf2fb547bb51016c8bbbaca21d
    b264cc9f332769ad8dd895f0a3517815aafdab091172373f9cb58039a24faf0d
    79c863a96c9febea64f5a11aa4fbd8c1a28c340201ac02000001000001000000
    000000e03f8407ea21c7b3c885cf2fb547bb51016c8bbbaca21db264cc9f3327
    69ad8dd895f0a301020001036d2d3101ffee2faf0500010001000a0072657175
    6573742d3202033117cc5f6120626f6479

    c56672020b80970102ff8e2bab3b26e0c127002127905539b47eb421de85d554
    e15f55a446459b52b4517815aafdab0911005443af0c0e97f60b57f1450f3051
    247bce8f92565feb6cd650c9369b79f0b43b0002ff8e2bab3b26e0c127002127
    905539b47eb421de85d554e15f55a446459b52b4517815aafdab0911005443af
    0c0e97f60b57f1450f3051247bce8f92565feb6cd650c9369b79f0b43b0002d1
    ec274b
    ");
}

#[test]
fn any_flipped_bit_and_any_missing_end_of_a_packed_header_is_detected() {
    let key = ActionKey(Digest::hash("key"));
    let reading = ParseResult::Malformed {
        parser: 1,
        fault: "x".into(),
    };
    let failed = frame::failure(key, &header(), "class", "message").unwrap();
    let parsed = frame::parse_result(key, Digest::hash("a body"), &reading).unwrap();
    for frame in packed(vec![entry(1).1, entry(2).1, entry(3).1, failed, parsed]) {
        let head = FrameHeader::decode(&frame).unwrap().head_len as usize;
        for at in 0..head {
            for bit in 0..8 {
                let mut flipped = frame.clone();
                flipped[at] ^= 1 << bit;
                assert!(
                    FrameHeader::decode(&flipped).is_err(),
                    "byte {at} of {head}"
                );
            }
            let cut = FrameHeader::decode(&frame[..at]);
            assert!(
                matches!(cut, Err(FrameHeaderError::Short(needed)) if needed > at),
                "{at} bytes of {head}: {cut:?}"
            );
        }
    }
}

#[test]
fn a_packed_frame_in_an_export_is_refused() {
    let frames = packed(vec![entry(1).1, entry(2).1, entry(3).1]).concat();
    let mut stream = frames.as_slice();
    let mut read =
        || super::exchange::read_item(&mut stream, |header| Some(ActionKey(header.place)));
    assert!(read().unwrap().is_some(), "the fields that they share");
    assert!(
        read().unwrap().is_some(),
        "the first, which names none of them"
    );
    assert!(read().is_err());
}

proptest! {
    #[test]
    fn packed_entries_are_explained_as_before(kinds in prop::collection::vec((0..4u64, any::<bool>()), 1..12)) {
        let key = ActionKey(Digest::hash("failed"));
        let frames = kinds.iter().map(|(n, fails)| match fails {
            true => frame::failure(key, &entry(*n).0, "class", "message").unwrap(),
            false => entry(*n).1,
        });
        let mut shared = SharedFields::default();
        let mut found = Vec::new();
        let packed = packed(frames.collect());
        for frame in &packed {
            let header = FrameHeader::decode(frame).unwrap();
            prop_assert_eq!(header.location(0, 0).len(), frame.len() as u64);
            if let FrameContent::Fields(new) = header.content {
                shared.add(new);
                continue;
            }
            let Some(DecodedHeader::Whole(meta)) = decode_header(&header, &frame[..header.head_len as usize], &shared) else {
                panic!("an entry is explained");
            };
            found.push(*meta);
            // and packed again, for another pack
            let again = PortableFrame::read(frame.clone(), &shared);
            let PortableFrame::Entry(_) = &again else { panic!("an entry stays one") };
            let once = pack(vec![again], &mut FieldNumbers::default()).unwrap().frames;
            let first = once.first().unwrap();
            let header = FrameHeader::decode(first).unwrap();
            let found = decode_header(&header, &first[..header.head_len as usize], &SharedFields::default());
            prop_assert!(matches!(found, Some(DecodedHeader::Whole(_))));
        }
        let expected: Vec<EntryHeader> = kinds.iter().map(|(n, _)| entry(*n).0).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_killed_prune_does_not_open_a_closed_batch_again() {
    let dir = tempdir().unwrap();
    let nonce = BatchNonce::new(1, std::iter::empty());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let store = opened(dir.path());
    // So much of the first pack is live that no prune rewrites it for another reason.
    let body: Vec<u8> = (0..200_u32)
        .flat_map(|n| Digest::hash(n.to_le_bytes()).0)
        .collect();
    runtime
        .block_on(store.put_reply(ActionKey(Digest::hash("key")), &header(), body.into()))
        .unwrap();
    runtime
        .block_on(store.put_step(nonce, BatchStep::Intent, b"intent"))
        .unwrap();
    store
        .inner
        .exclusively(|active| store.inner.start_next_pack(active))
        .unwrap();
    runtime
        .block_on(store.put_step(nonce, BatchStep::Closed, b"closed"))
        .unwrap();
    // As after a kill before the first pack was removed: the tree has already forgotten what opened the batch.
    let forget = |active: &mut ActivePack| {
        store
            .inner
            .tables_mut()
            .forget_step(nonce, BatchStep::Intent);
        store.inner.flush_tree(active);
        Ok(())
    };
    store.inner.exclusively(forget).unwrap();
    store.close().unwrap();
    for _ in 0..3 {
        let store = opened(dir.path());
        store.prune(&[], &Default::default()).unwrap();
        store.close().unwrap();
        let steps = CacheSnapshot::open(dir.path()).unwrap().steps();
        assert!(
            steps.is_empty() || steps.contains(&(nonce, BatchStep::Closed)),
            "{steps:?}"
        );
    }
    assert!(CacheSnapshot::open(dir.path()).unwrap().steps().is_empty());
}

#[test]
fn no_pack_is_overwritten() {
    let dir = tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let store = opened(dir.path());
    let key = ActionKey(Digest::hash("key"));
    runtime
        .block_on(store.put_reply(key, &header(), bytes::Bytes::from_static(b"a body")))
        .unwrap();
    assert!(ActivePack::create(&store.inner.layout, 1).is_err());
    assert_eq!(store.body(&store.find(&key).unwrap()).unwrap(), "a body");
}

#[test]
fn a_parse_result_without_its_entry_changes_nothing() {
    let mut tables = Tables::default();
    let reading = ParseResult::Malformed {
        parser: 1,
        fault: "x".into(),
    };
    let frame =
        frame::parse_result(ActionKey(Digest::hash("k")), Digest::hash("raw"), &reading).unwrap();
    let header = FrameHeader::decode(&frame).unwrap();
    tables.apply(header.location(1, 24), &header);
    assert_eq!(tables.record_count(), 0);
}

/// A store whose pack is replaced by a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn after_a_full_disk_nothing_is_written_and_acknowledged_entries_are_intact() {
    let dir = tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let store = opened(dir.path());
    let put = |name: &str| {
        let key = ActionKey(Digest::hash(name));
        runtime.block_on(store.put_reply(
            key,
            &header(),
            bytes::Bytes::copy_from_slice(name.as_bytes()),
        ))
    };
    let kept = put("kept").unwrap();
    store.inner.active().file = File::options().append(true).open("/dev/full").unwrap();
    let error = put("lost").unwrap_err().to_string();
    assert!(
        error.contains("No space left") && error.contains("Everything stored before is intact"),
        "{error}"
    );
    assert_eq!(
        put("after").unwrap_err().to_string(),
        error,
        "the first cause is repeated"
    );
    assert_eq!(store.body(&kept).unwrap(), "kept");
    assert!(store.sync().is_err());
    drop(store);
    let store = opened(dir.path());
    assert_eq!(store.body(&store.find(&kept.key).unwrap()).unwrap(), "kept");
    assert_eq!(store.records().len(), 1);
    assert_eq!(CacheSnapshot::open(dir.path()).unwrap().len(), 1);
}
