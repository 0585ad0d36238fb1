package encode

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tailrace-cdc/replicator/change"
)

// The fixed schema of the protobuf encoding, so that no reader needs a schema per table:
//
//	message Value { oneof kind { bool null = 1; bool bool = 2; string s = 3; string n = 4; bytes b = 5;
//	  Strings ss = 6; Strings ns = 7; Bytes bs = 8; List l = 9; Item m = 10; } }
//	message Strings { repeated string values = 1; }
//	message Bytes { repeated bytes values = 1; }
//	message List { repeated Value values = 1; }
//	message Item { repeated Attribute attributes = 1; }
//	message Attribute { string name = 1; Value value = 2; }
const (
	pbNull, pbBool, pbS, pbN, pbB = 1, 2, 3, 4, 5
	pbList, pbMap                 = 9, 10
)

// Protobuf appends a Value message: members sorted, numbers canonical.
func Protobuf(dst []byte, v *change.Value) ([]byte, error) {
	switch v.Kind {
	case change.KindNull, change.KindBool:
		field, on := protowire.Number(pbNull), true
		if v.Kind == change.KindBool {
			field, on = pbBool, v.Bool
		}
		return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), protowire.EncodeBool(on)), nil
	case change.KindString, change.KindNumber, change.KindBinary:
		b, err := Natural(nil, v)
		field := map[change.Kind]protowire.Number{change.KindString: pbS, change.KindNumber: pbN,
			change.KindBinary: pbB}[v.Kind]
		return appendField(dst, field, b), err
	case change.KindList:
		var inner []byte
		for i := range v.L {
			element, err := Protobuf(nil, &v.L[i])
			if err != nil {
				return dst, err
			}
			inner = appendField(inner, 1, element)
		}
		return appendField(dst, pbList, inner), nil
	case change.KindMap:
		inner, err := ProtobufItem(nil, v.M)
		return appendField(dst, pbMap, inner), err
	}
	members, err := Members(v)
	var inner []byte
	for _, m := range members {
		inner = appendField(inner, 1, m)
	}
	field := map[change.Kind]protowire.Number{change.KindStringSet: 6, change.KindNumberSet: 7,
		change.KindBinarySet: 8}[v.Kind]
	return appendField(dst, field, inner), err
}

// ProtobufItem appends an Item message with attributes sorted by name.
func ProtobufItem(dst []byte, attrs []change.Attr) ([]byte, error) {
	sorted := slices.Clone(attrs)
	slices.SortFunc(sorted, func(a, b change.Attr) int { return strings.Compare(a.Name, b.Name) })
	for i := range sorted {
		value, err := Protobuf(nil, &sorted[i].Value)
		if err != nil {
			return dst, err
		}
		attribute := appendField(nil, 1, []byte(sorted[i].Name))
		dst = appendField(dst, 1, appendField(attribute, 2, value))
	}
	return dst, nil
}

func appendField(dst []byte, field protowire.Number, b []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), b)
}
