package encode

import (
	"crypto/sha256"

	"github.com/tailrace-cdc/replicator/change"
)

// Distinct turns an encoding into one of eight bytes, the start of a SHA-256 over it: equal values give equal
// numbers, others practically never do. This is what a count of distinct values needs, whatever the type.
func Distinct(of func([]byte, *change.Value) ([]byte, error)) func([]byte, *change.Value) ([]byte, error) {
	return func(dst []byte, v *change.Value) ([]byte, error) {
		start := len(dst)
		out, err := of(dst, v)
		if err != nil {
			return dst, err
		}
		sum := sha256.Sum256(out[start:])
		return append(out[:start], sum[:8]...), nil
	}
}
