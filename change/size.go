package change

import (
	"encoding/base64"
	"strings"
)

// Size returns the bytes of an item as DynamoDB counts them, within a byte for each number.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func (img Image) Size() int { return sizeOf(img) }

func sizeOf(attrs []Attr) (n int) {
	for i := range attrs {
		n += len(attrs[i].Name) + attrs[i].Value.Size()
	}
	return n
}

// Size returns the bytes of a value as DynamoDB counts them, within a byte for each number.
func (v *Value) Size() int {
	switch v.Kind {
	case KindString:
		return len(v.S)
	case KindBinary:
		return base64.StdEncoding.DecodedLen(len(v.S)) - strings.Count(v.S, "=")
	case KindNumber:
		digits, _, _ := strings.Cut(v.S, "E")
		return (len(strings.Trim(digits, "-.0"))+1)/2 + 1
	case KindNull, KindBool:
		return 1
	case KindMap:
		return 3 + len(v.M) + sizeOf(v.M)
	}
	n := 0
	if v.Kind == KindList {
		n = 3 + len(v.L)
	}
	for i := range v.L {
		n += v.L[i].Size()
	}
	return n
}
