//! Unit tests of the cache: the bytes on disk, the encoding of frames, and a full disk.

use std::fs::File;

use proptest::prelude::*;
use tempfile::tempdir;

use super::entry::{Day, EntryHeader, EntryStatus, EntrySummary, FrameLocation, Record, Tag};
use super::index::Index;
use super::packs::frame::{
    self, BatchNonce, BatchStep, EncodedBody, FrameContent, FrameHeader, FrameHeaderError,
    PackHeader,
};
use super::packs::{compress_body, decode_body};
use super::writing::ActivePack;
use super::{CacheSnapshot, Lookup, ModelNames, StepLog, Store};
use crate::digest::{ActionKey, Digest};
use base::units::{Tokens, Usage, Usd};

fn header() -> EntryHeader {
    let summary = EntrySummary {
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
    };
    EntryHeader {
        summary,
        origin: None,
        texts: ["m", "text"].map(Digest::hash).into(),
        document: b"{}".into(),
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
    c566720101000000870000000600000006000000f6864749ff8e2bab3b26e0c1
    27002127905539b47eb421de85d554e15f55a446459b52b4517815aafdab0911
    72373f9cb58039a24faf0d79c863a96c9febea64f5a11aa4fbd8c1a28c340201
    ac02000001000001000000000000e03f84072b81e3daf3a9ee913eddf1883859
    dbc9d9043df8cdccd214ee4795198ba1451b01020001036d2d31000283d9dab0
    6011479163c7c4d5fa735f911bac86729f56aaa115b7eed2eb66e022831c6831
    fdc9a309a4c66cc3cb2fa3740a100da8b86d6fe86e9ba40deb50aa19027b7db8
    2bfff36120626f6479
    ");
}

#[test]
fn the_bytes_of_a_pack_header_and_a_record_are_pinned() {
    insta::assert_snapshot!(hex(&PackHeader { id: 3, nonce: 1 }.encode()), @"4345735041434b01030000000100000000000000f8134cbc");
    insta::assert_snapshot!(hex(&record().encode().unwrap()), @"
    020118ac0246517815aafdab091172373f9cb58039a24faf0d79c863a96c9feb
    ea64f5a11aa406015443af0c0e97f60b57f1450f3051247bce8f92565feb6cd6
    50c9369b79f0b43b02fbd8c1a28c340201ac02000001000001000000000000e0
    3f84072b81e3daf3a9ee913eddf1883859dbc9d9043df8cdccd214ee4795198b
    a1451b01020001036d2d31
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
            parser: 2,
        },
        summary: header().summary,
    }
}

#[test]
fn a_record_takes_1_kb_in_the_tree_at_most_and_one_of_another_version_is_refused() {
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
        let mut record = Record { status, ..record() };
        record.summary.usage = usage;
        record.summary.cost = Some(Usd(1e300));
        record.summary.latency_ms = 86_400_000;
        let value = record.encode().unwrap();
        assert!(value.len() <= 1024, "{}", value.len());
        assert_eq!(Record::decode(record.key, &value), Some(record));
    }
    let bytes = record().encode().unwrap();
    assert_eq!(Record::decode(record().key, &bytes), Some(record()));
    let other = [&[bytes[0] + 1], &bytes[1..]].concat();
    assert_eq!(Record::decode(record().key, &other), None);
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest)
}

/// A frame of any kind, and what reading it must give.
fn any_frame() -> impl Strategy<Value = (Vec<u8>, FrameContent)> {
    let key = || digest().prop_map(ActionKey);
    let body = prop::collection::vec(any::<u8>(), 0..300);
    let reply = (key(), body, any::<u64>()).prop_map(|(key, body, created)| {
        let mut header = header();
        header.summary.created = created;
        (
            frame::reply(key, &header, &compress_body(&body).unwrap()).unwrap(),
            FrameContent::Reply(header.summary),
        )
    });
    let parse_result =
        (key(), digest(), any::<bool>(), ".{0,40}").prop_map(|(key, raw, is_output, fault)| {
            let reading = match is_output {
                true => EntryStatus::Output {
                    out: raw,
                    parser: 4,
                },
                false => EntryStatus::malformed(4, &fault),
            };
            (
                frame::parse_result(key, raw, &reading).unwrap(),
                FrameContent::ParseResult(reading),
            )
        });
    let failure = (key(), ".{0,20}", ".{0,90}").prop_map(|(key, class, message)| {
        let frame = frame::failure(key, &header(), (&class, &message), &EncodedBody::default());
        let frame = frame.unwrap();
        (
            frame,
            FrameContent::Failure {
                summary: header().summary,
                class,
                message,
            },
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
    let latest = (digest(), key()).prop_map(|(place, key)| {
        (
            frame::latest(&place, key).unwrap(),
            FrameContent::Latest(place),
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
    prop_oneof![reply, parse_result, failure, touch, latest, text, journal]
}

proptest! {
    #[test]
    fn a_frame_reads_back_as_it_was_written((frame, content) in any_frame()) {
        let header = FrameHeader::decode(&frame).unwrap();
        prop_assert_eq!(&header.content, &content);
        prop_assert_eq!(header.location(0, 0).len(), frame.len() as u64);
        let is_entry = matches!(content, FrameContent::Reply(_) | FrameContent::Failure { .. });
        let entry = header.entry(&frame[..header.head_len as usize]);
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
        let read = FrameHeader::decode(&bytes);
        prop_assert!(matches!(read, Err(FrameHeaderError::Short(_) | FrameHeaderError::Damaged(_))));
    }

    #[test]
    fn a_frame_that_is_cut_off_says_how_many_bytes_it_needs((frame, _) in any_frame(), keep in 0..88usize) {
        let cut = &frame[..keep.min(frame.len())];
        prop_assert_eq!(FrameHeader::decode(cut), Err(FrameHeaderError::Short(frame::FIXED)));
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
    // As after a kill before the first pack was removed: what opened the batch is still there.
    let first = dir.path().join("packs/00000001.pack");
    let opening = std::fs::read(&first).unwrap();
    store.close().unwrap();
    for is_killed in [true, false, false, false] {
        let store = opened(dir.path());
        store.prune(&[], &Default::default()).unwrap();
        store.close().unwrap();
        let steps = CacheSnapshot::open(dir.path()).unwrap().steps();
        assert!(
            steps.is_empty() || steps.contains(&(nonce, BatchStep::Closed)),
            "{steps:?}"
        );
        if is_killed {
            std::fs::write(&first, &opening).unwrap();
        }
    }
    assert!(CacheSnapshot::open(dir.path()).unwrap().steps().is_empty());
}

#[test]
fn a_batch_whose_intent_is_damaged_is_named_and_one_that_can_be_found_is_not() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    for (damaged, is_named) in [(0, true), (1, false), (2, false)] {
        let dir = tempdir().unwrap();
        let pack = dir.path().join("packs/00000001.pack");
        let nonce = BatchNonce::new(1, std::iter::empty());
        let store = opened(dir.path());
        let mut ends = Vec::new();
        for step in [BatchStep::Intent, BatchStep::Submitted] {
            let written = store.put_step(nonce, step, b"what it is");
            runtime.block_on(written).unwrap();
            ends.push(std::fs::metadata(&pack).unwrap().len() as usize);
        }
        let (key, header) = (ActionKey(Digest::hash("key")), header());
        let written = store.put_reply(key, &header, bytes::Bytes::from_static(b"a body"));
        runtime.block_on(written).unwrap();
        store.close().unwrap();
        let mut bytes = std::fs::read(&pack).unwrap();
        ends.push(bytes.len());
        bytes[ends[damaged] - 1] ^= 0x40;
        std::fs::write(&pack, bytes).unwrap();
        let reports = opened(dir.path()).verify().unwrap();
        let [report] = reports.as_slice() else {
            panic!("{reports:?}")
        };
        let text = report.to_string();
        assert_eq!(text.contains("it records a batch"), is_named, "{text}");
    }
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
    let mut index = Index::default();
    let reading = EntryStatus::malformed(1, "x");
    let frame =
        frame::parse_result(ActionKey(Digest::hash("k")), Digest::hash("raw"), &reading).unwrap();
    let header = FrameHeader::decode(&frame).unwrap();
    index.apply(header.location(1, 24), &header);
    assert!(index.records().is_empty());
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
