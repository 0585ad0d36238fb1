package putback

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// Size returns the size of an item in typed JSON as DynamoDB counts it, within a byte for each
// number.
//
// Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func Size(item []byte) (int, error) {
	var d change.Decoder
	image, err := d.Image(item)
	if err != nil {
		return 0, err
	}
	return sizeOf(image), nil
}

func sizeOf(attrs []change.Attr) (n int) {
	for i := range attrs {
		n += len(attrs[i].Name) + valueSize(&attrs[i].Value)
	}
	return n
}

func valueSize(v *change.Value) int {
	switch v.Kind {
	case change.KindString:
		return len(v.S)
	case change.KindBinary:
		return base64.StdEncoding.DecodedLen(len(v.S)) - strings.Count(v.S, "=")
	case change.KindNumber:
		digits, _, _ := strings.Cut(v.S, "E")
		return (len(strings.Trim(digits, "-.0"))+1)/2 + 1
	case change.KindNull, change.KindBool:
		return 1
	case change.KindMap:
		return 3 + len(v.M) + sizeOf(v.M)
	}
	n := 0
	if v.Kind == change.KindList {
		n = 3 + len(v.L)
	}
	for i := range v.L {
		n += valueSize(&v.L[i])
	}
	return n
}

// Units returns the write units that an item of a size takes: one for each KB that it has begun.
func Units(size int) float64 { return float64(max((size+1023)/1024, 1)) }

// Equal reports whether two items in typed JSON are the same, apart from the attribute attr. The
// order of sets and of attributes, and the notation of numbers, do not count.
func Equal(a, b []byte, attr string) bool {
	x, err := canonical(a, attr)
	y, other := canonical(b, attr)
	return err == nil && other == nil && bytes.Equal(x, y)
}

func canonical(item []byte, without string) ([]byte, error) {
	var d change.Decoder
	image, err := d.PartialImage(item, func(name string) bool { return without == "" || name != without })
	if err != nil {
		return nil, err
	}
	return image.AppendJSON(nil), nil
}
