package putback

import (
	"bytes"

	"github.com/tailrace-cdc/replicator/change"
)

// Size returns the size of an item in typed JSON as DynamoDB counts it, within a byte for each
// number.
func Size(item []byte) (int, error) {
	var d change.Decoder
	image, err := d.Image(item)
	if err != nil {
		return 0, err
	}
	return image.Size(), nil
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
