package encode

import (
	"crypto/sha256"

	"github.com/tailrace-cdc/replicator/change"
)

// Distinct returns an encoding of eight bytes: the first of a SHA-256 over another encoding. Equal
// values give equal bytes, different values practically never do, as a count of distinct values of
// any type needs.
func Distinct(encoding func([]byte, *change.Value) ([]byte, error)) func([]byte, *change.Value) ([]byte, error) {
	return func(dst []byte, v *change.Value) ([]byte, error) {
		start := len(dst)
		out, err := encoding(dst, v)
		if err != nil {
			return dst, err
		}
		sum := sha256.Sum256(out[start:])
		return append(out[:start], sum[:8]...), nil
	}
}
