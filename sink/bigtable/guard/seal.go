package guard

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
)

const (
	secretSize = 32 // AES-256
	idSize     = 4  // of a secret, in front of what it sealed
	nonceSize  = 12
)

// Sealer seals the values of guards with AES-256-GCM under the first of its secrets, and opens what
// any of them sealed, so that a secret can be replaced while values of the old one remain. A nil
// *Sealer opens nothing. Safe for concurrent use.
//
// A sealed value is 0x02, the first 4 bytes of the secret's SHA-256, the nonce and the ciphertext.
// Row key and qualifier are authenticated with it, so a value that is copied into another row or
// column does not open there.
//
// The nonce is a keyed hash of row, qualifier and content, not a random number. So a write that is
// repeated gives the same bytes, as all other cells do (Rule 7), and a row that is equal stays
// equal. And a nonce is spent for each item and row, not for each write: with random nonces, a busy
// table would exceed the 2^32 values that one secret may seal within days. Equal values show only
// that an item was written to the same place again, which its row key shows as well.
type Sealer struct{ secrets []secret }

type secret struct {
	id       [idSize]byte
	aead     cipher.AEAD
	nonceKey [sha256.Size]byte
}

// NewSealer makes a Sealer from secrets of 32 bytes in base64. It returns nil without secrets.
func NewSealer(secrets []string) (*Sealer, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	s := &Sealer{}
	for i, text := range secrets {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != secretSize { // the text is not quoted: it is secret
			return nil, fmt.Errorf("secret %d is not %d bytes in base64: make one with `openssl rand -base64 %d`",
				i+1, secretSize, secretSize)
		}
		k, err := newSecret(raw)
		if err != nil {
			return nil, fmt.Errorf("use secret %d: %w", i+1, err)
		}
		s.secrets = append(s.secrets, k)
	}
	return s, nil
}

func newSecret(raw []byte) (k secret, err error) {
	sum := sha256.Sum256(raw)
	copy(k.id[:], sum[:])
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte("tailrace guard nonce"))
	mac.Sum(k.nonceKey[:0])
	block, err := aes.NewCipher(raw)
	if err != nil {
		return k, err
	}
	k.aead, err = cipher.NewGCM(block)
	return k, err
}

// Append appends the sealed value of an item's guard in a row.
func (s *Sealer) Append(dst []byte, id Guard, row, qualifier []byte) []byte {
	k := &s.secrets[0]
	content := Append(nil, id.Pipeline, id.Table, id.Key)[1:] // the first byte tells plain from sealed
	place := authenticated(row, qualifier)
	mac := hmac.New(sha256.New, k.nonceKey[:])
	mac.Write(place)
	mac.Write(content)
	nonce := mac.Sum(nil)[:nonceSize]
	dst = append(append(append(dst, sealedForm), k.id[:]...), nonce...)
	return k.aead.Seal(dst, nonce, content, place)
}

// open returns the content of a sealed value. known is false when no secret has the value's id.
func (s *Sealer) open(value, row, qualifier []byte) (content []byte, known bool, err error) {
	sealed := value[1:]
	if len(sealed) < idSize+nonceSize {
		return nil, false, errors.New("the sealed value is cut off")
	}
	if s == nil {
		return nil, false, nil
	}
	id, nonce, sealed := sealed[:idSize], sealed[idSize:idSize+nonceSize], sealed[idSize+nonceSize:]
	for i := range s.secrets {
		k := &s.secrets[i]
		if string(k.id[:]) != string(id) {
			continue
		}
		known = true
		if content, err = k.aead.Open(nil, nonce, sealed, authenticated(row, qualifier)); err == nil {
			return content, true, nil
		}
	}
	if known {
		err = errors.New("the sealed value was altered, or copied from another row or column")
	}
	return nil, known, err
}

// authenticated returns row key and qualifier as one text that no other pair gives.
func authenticated(row, qualifier []byte) []byte {
	text := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(row)+len(qualifier)), uint32(len(row)))
	return append(append(text, row...), qualifier...)
}
