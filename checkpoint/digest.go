package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Hash identifies an entry by its bytes. Every entry carries the hash of its predecessor. A
// sequence number alone does not identify an entry: a log that lost its tail assigns the same
// numbers again.
type Hash [16]byte

// Nonce is a random number that identifies one claim of a log.
type Nonce [8]byte

// String returns hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText reads hexadecimal digits.
func (h *Hash) UnmarshalText(b []byte) error { return decodeHex(h[:], b) }

// MarshalText writes hexadecimal digits.
func (n Nonce) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, n[:]), nil }

// UnmarshalText reads hexadecimal digits.
func (n *Nonce) UnmarshalText(b []byte) error { return decodeHex(n[:], b) }

// decodeHex fills dst from exactly as many hexadecimal digits as it holds.
func decodeHex(dst, b []byte) error {
	if hex.DecodedLen(len(b)) != len(dst) {
		return fmt.Errorf("decode hex: %d digits for %d bytes", len(b), len(dst))
	}
	_, err := hex.Decode(dst, b)
	return err
}

// HashOf returns the hash of a message as it is stored.
func HashOf(msg []byte) (h Hash) {
	sum := sha256.Sum256(msg)
	copy(h[:], sum[:])
	return h
}
