//! What makes two rows the same, and what does not.

use arrow_array::builder::{MapBuilder, StringBuilder};
use arrow_array::types::{Float32Type, Int8Type, Int32Type};
use arrow_array::{
    BinaryViewArray, Decimal128Array, DictionaryArray, Float64Array, Int32Array, LargeStringArray,
    ListArray, NullArray, StringArray, StringViewArray, StructArray, TimestampNanosecondArray,
};

use super::*;

fn batch(columns: &[ArrayRef]) -> RecordBatch {
    let names = ["a", "b", "c"];
    let columns = columns.iter().zip(names);
    RecordBatch::try_from_iter_with_nullable(columns.map(|(c, name)| (name, c.clone(), true)))
        .unwrap()
}

/// The hash of each value of a column.
fn column(values: impl Array + 'static) -> Vec<u128> {
    let values: ArrayRef = Arc::new(values);
    assert!(is_hashable(values.data_type()), "{}", values.data_type());
    hash(&batch(&[values])).unwrap().columns.remove(0)
}

fn sums(a: Vec<i32>, b: Vec<i32>) -> Sums {
    let columns: [ArrayRef; 2] = [Arc::new(Int32Array::from(a)), Arc::new(Int32Array::from(b))];
    hash(&batch(&columns)).unwrap().sums()
}

fn vectors(rows: Vec<Option<Vec<Option<f32>>>>) -> FixedSizeListArray {
    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, 2)
}

#[test]
fn the_order_of_rows_and_the_cut_into_batches_do_not_matter() {
    let whole = sums(vec![1, 2, 3], vec![4, 5, 6]);
    assert_eq!(whole, sums(vec![3, 1, 2], vec![6, 4, 5]));
    let mut parts = Sums::default();
    parts.add(&sums(vec![3], vec![6]));
    parts.add(&sums(vec![1, 2], vec![4, 5]));
    assert_eq!(whole, parts);
}

#[test]
fn a_row_twice_for_another_one_is_noticed() {
    let mut once = sums(vec![1, 2], vec![4, 5]);
    once.add(&sums(vec![3, 3], vec![6, 6]));
    let mut other = sums(vec![1, 2], vec![4, 5]);
    other.add(&sums(vec![7, 7], vec![8, 8]));
    assert_ne!(once.all, other.all);
}

#[test]
fn values_that_change_places_between_rows_are_noticed() {
    let (before, after) = (sums(vec![1, 2], vec![4, 5]), sums(vec![1, 2], vec![5, 4]));
    assert_eq!(before.columns, after.columns);
    assert_ne!(before.all, after.all);
}

#[test]
fn floats_are_compared_bit_by_bit() {
    let payload = |bits: u64| f64::from_bits(0x7FF8_0000_0000_0000 | bits);
    let distinct = column(Float64Array::from(vec![
        Some(0.0),
        Some(-0.0),
        Some(payload(0)),
        Some(payload(1)),
        Some(-payload(1)),
        None,
    ]));
    assert_eq!(
        distinct
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        6
    );
    let bits = |value: f32| column(vectors(vec![Some(vec![Some(1.0), Some(value)])])).remove(0);
    let nan = |bits: u32| f32::from_bits(0x7FC0_0000 | bits);
    assert_ne!(bits(0.0), bits(-0.0));
    assert_ne!(bits(nan(0)), bits(nan(1)));
    assert_eq!(bits(nan(1)), bits(nan(1)));
}

#[test]
fn a_vector_hashes_the_same_wherever_it_is_cut() {
    let rows = vec![
        Some(vec![Some(1.0), Some(2.0)]),
        None,
        Some(vec![None, Some(2.0)]),
        Some(vec![Some(3.0), Some(4.0)]),
    ];
    let whole = column(vectors(rows.clone()));
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(column(vectors(rows.clone()).slice(at, 1)), [whole[at]]);
        assert_eq!(column(vectors(vec![row.clone()])), [whole[at]]);
    }
    assert_eq!(
        whole
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        4
    );
}

#[test]
fn what_lies_under_a_null_does_not_count() {
    let nulls = || Some(vec![true, false].into());
    let field = || Arc::new(Field::new("x", DataType::Int32, true));
    let with = |hidden: i32| {
        let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, hidden]));
        column(StructArray::new(vec![field()].into(), vec![inner], nulls()))
    };
    assert_eq!(with(7), with(8));
    let list = |hidden: f32| {
        let item = Arc::new(Field::new("item", DataType::Float32, true));
        let values = arrow_array::Float32Array::from(vec![1.0, 2.0, hidden, hidden]);
        column(FixedSizeListArray::new(item, 2, Arc::new(values), nulls()))
    };
    assert_eq!(list(7.0), list(8.0));
}

#[test]
fn null_empty_and_a_null_inside_are_different() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        None,
        Some(vec![]),
        Some(vec![None]),
        Some(vec![None, None]),
        Some(vec![Some(0)]),
    ]);
    let found = column(lists);
    assert_eq!(
        found
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        5
    );
    let texts = column(StringArray::from(vec![None, Some("")]));
    assert_ne!(texts[0], texts[1]);
}

#[test]
fn a_dictionary_is_its_values() {
    let one: DictionaryArray<Int8Type> = vec!["x", "y", "x"].into_iter().collect();
    let other: DictionaryArray<Int8Type> = vec!["y", "x", "x"].into_iter().collect();
    let (one, other) = (column(one), column(other));
    assert_eq!([one[0], one[1], one[2]], [other[1], other[0], other[2]]);
}

#[test]
fn maps_are_hashed_by_their_entries_wherever_they_are() {
    let map = |entries: &[&[(&str, &str)]]| {
        let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
        for row in entries {
            for (key, value) in *row {
                maps.keys().append_value(key);
                maps.values().append_value(value);
            }
            maps.append(true).unwrap();
        }
        maps.finish()
    };
    let found = column(map(&[&[("k", "v")], &[("k", "w")], &[], &[("k", "v")]]));
    assert_eq!(found[0], found[3]);
    assert_ne!(found[0], found[1]);
    assert_ne!(found[0], found[2]);
    let nested = |value: &str| {
        let inner: ArrayRef = Arc::new(map(&[&[("k", value)]]));
        let field = Arc::new(Field::new("m", inner.data_type().clone(), true));
        column(StructArray::new(vec![field].into(), vec![inner], None))
    };
    assert_eq!(nested("v"), nested("v"));
    assert_ne!(nested("v"), nested("w"));
}

#[test]
fn temporal_decimal_view_and_large_types_are_hashed() {
    assert_ne!(
        column(TimestampNanosecondArray::from(vec![1])),
        column(TimestampNanosecondArray::from(vec![2]))
    );
    let decimal = |value| {
        Decimal128Array::from(vec![value])
            .with_precision_and_scale(20, 2)
            .unwrap()
    };
    assert_ne!(column(decimal(1)), column(decimal(2)));
    assert_ne!(
        column(StringViewArray::from(vec!["a"])),
        column(StringViewArray::from(vec!["b"]))
    );
    assert_ne!(
        column(BinaryViewArray::from(vec![b"a".as_slice()])),
        column(BinaryViewArray::from(vec![b"b".as_slice()]))
    );
    assert_ne!(
        column(LargeStringArray::from(vec!["a"])),
        column(LargeStringArray::from(vec!["b"]))
    );
    assert_eq!(column(NullArray::new(2)).len(), 2);
}
