package encode

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// ErrRange means that a number does not fit the fixed-width encoding.
var ErrRange = errors.New("number does not fit")

// Natural appends the default encoding: S raw, N canonical decimal text, B raw bytes, BOOL true or
// false, NULL nothing, collections as JSON with sorted keys and members. Together with the
// attribute's type it is lossless.
func Natural(dst []byte, v *change.Value) ([]byte, error) {
	switch v.Kind {
	case change.KindString:
		return append(dst, v.S...), nil
	case change.KindNumber:
		return Number(dst, v.S)
	case change.KindBinary:
		return Binary(dst, v.S)
	case change.KindBool:
		return strconv.AppendBool(dst, v.Bool), nil
	case change.KindNull:
		return dst, nil
	default:
		return appendNested(dst, v, true)
	}
}

// Number appends the canonical text of a number.
func Number(dst []byte, s string) ([]byte, error) {
	if isCanonical(s) {
		return append(dst, s...), nil
	}
	c, err := change.CanonicalNumber(s)
	return append(dst, c...), err
}

// isCanonical reports whether a number is already canonical: the fast path of Number, without
// allocations. It may return false for some that are.
func isCanonical(s string) bool {
	t := s
	if t != "" && t[0] == '-' {
		t = t[1:]
	}
	if t == "" || len(t) > 38 {
		return false
	}
	dot := -1
	for i := range len(t) {
		switch {
		case t[i] == '.' && dot < 0 && i > 0:
			dot = i
		case t[i] < '0' || t[i] > '9':
			return false
		}
	}
	if dot < 0 {
		return t[0] != '0' || (len(t) == 1 && len(s) == 1)
	}
	return len(t) <= 38 && t[len(t)-1] != '0' && t[len(t)-1] != '.' && (t[0] != '0' || dot == 1)
}

// Binary appends the bytes of a base64 text.
func Binary(dst []byte, b64 string) ([]byte, error) {
	n := len(dst)
	dst = slices.Grow(dst, base64.StdEncoding.DecodedLen(len(b64)))
	dst, err := base64.StdEncoding.AppendDecode(dst, []byte(b64))
	if err != nil {
		return dst[:n], fmt.Errorf("decode binary: %w", err)
	}
	return dst, nil
}

// Int64 appends the 64-bit big-endian signed integer that Bigtable's increments read.
// Source: https://cloud.google.com/bigtable/docs/writes#increment
func Int64(dst []byte, v *change.Value) ([]byte, error) {
	if v.Kind != change.KindNumber {
		return dst, wrongType("int64", "N", v)
	}
	n, err := Integer(v.S)
	if err != nil {
		return dst, err
	}
	return binary.BigEndian.AppendUint64(dst, uint64(n)), nil
}

// Integer returns a number as a 64-bit integer; the error wraps ErrRange if it does not fit.
func Integer(s string) (int64, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	c, err := change.CanonicalNumber(s)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(c, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: a number of %d characters is not a 64-bit integer", ErrRange, len(c))
	}
	return n, nil
}

// Float64 appends the big-endian IEEE double nearest to the number: it may lose digits.
func Float64(dst []byte, v *change.Value) ([]byte, error) {
	if v.Kind != change.KindNumber {
		return dst, wrongType("float64", "N", v)
	}
	f, err := strconv.ParseFloat(v.S, 64)
	if err != nil {
		return dst, fmt.Errorf("%w: a number of %d characters is not a double", ErrRange, len(v.S))
	}
	return binary.BigEndian.AppendUint64(dst, math.Float64bits(f)), nil
}

// Bool1 appends one byte: 01 or 00.
func Bool1(dst []byte, v *change.Value) ([]byte, error) {
	if v.Kind != change.KindBool {
		return dst, wrongType("bool1", "BOOL", v)
	}
	if v.Bool {
		return append(dst, 1), nil
	}
	return append(dst, 0), nil
}

// Decimal appends the canonical text of a number, and refuses everything else.
func Decimal(dst []byte, v *change.Value) ([]byte, error) {
	if v.Kind != change.KindNumber {
		return dst, wrongType("decimal", "N", v)
	}
	return Number(dst, v.S)
}

// Text appends strings, numbers and booleans as text, and refuses the rest.
func Text(dst []byte, v *change.Value) ([]byte, error) {
	switch v.Kind {
	case change.KindString, change.KindNumber, change.KindBool:
		return Natural(dst, v)
	}
	return dst, wrongType("text", "S, N or BOOL", v)
}

// Raw appends the bytes of a string or a binary, and refuses the rest.
func Raw(dst []byte, v *change.Value) ([]byte, error) {
	switch v.Kind {
	case change.KindString, change.KindBinary:
		return Natural(dst, v)
	}
	return dst, wrongType("raw", "S or B", v)
}

// DynamoJSON appends the value in DynamoDB's typed JSON, in canonical form: lossless.
func DynamoJSON(dst []byte, v *change.Value) ([]byte, error) { return v.AppendJSON(dst), nil }

// TypeError means that an encoding cannot hold values of this type.
type TypeError struct{ As, Wants, Got string }

// Error names the encoding and both types.
func (e *TypeError) Error() string {
	return fmt.Sprintf("%s holds %s, the value is of type %s", e.As, e.Wants, e.Got)
}

func wrongType(as, wants string, v *change.Value) error {
	return &TypeError{As: as, Wants: wants, Got: v.Kind.String()}
}

// digitsOf returns the number of digits of a canonical number.
func digitsOf(s string) int {
	if i := strings.IndexByte(s, 'E'); i >= 0 {
		s = s[:i]
	}
	n := 0
	for i := range len(s) {
		if s[i] >= '0' && s[i] <= '9' {
			n++
		}
	}
	return n
}
