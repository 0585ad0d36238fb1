package tmpl

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tailrace-cdc/replicator/change"
	"github.com/tailrace-cdc/replicator/problem"
	"github.com/tailrace-cdc/replicator/transform/encode"
	"github.com/tailrace-cdc/replicator/transform/lang"
)

// filter is one compiled step of a reference.
type filter struct {
	name      string
	src       string // name and arguments
	apply     func(dst []byte, in string) ([]byte, error)
	shape     func(in Shape) Shape
	injective bool
}

// Filters lists the names of all filters with what they do, for messages and documentation.
var Filters = []struct{ Name, Does string }{
	{"pad", "pad(n): digits, with zeros in front up to n; longer, negative or zero-led numbers are refused"},
	{"ordnum", "any number as text that sorts by value"},
	{"revstr", "characters in reverse order: spreads sequential ids"},
	{"revms", "revms(max): max - n, so that the newest sorts first"},
	{"rev64", "9223372036854775807 - n in 19 digits: newest first"},
	{"domain", "drive.google.com becomes com.google.drive"},
	{"iso_ms", "ISO 8601 date or time as unix ms"},
	{"s_ms", "unix seconds as ms"},
	{"int", "an integer, checked"},
	{"hmac", "hmac(secret,n): n hex digits of HMAC-SHA-256: for personal data"},
	{"hash", "hash(n): n hex digits of SHA-256"},
	{"hex", "lower-case hex of the bytes"},
	{"b64", "URL-safe base64 of the bytes, no padding"},
	{"lower", "lower case; different values may become the same"},
}

// injectiveDigits is how many hex digits of a hash practically never collide: among a hundred
// million values, two share 64 bits with a probability of 1 in 3,700. With 32 bits, 77 thousand
// values have an even chance.
const injectiveDigits = 16

// toAny is the shape of filters that may return any text.
func toAny(Shape) Shape { return Shape{anyByte} }

// exactly returns the shape of n bytes out of a set.
func exactly(n int, set Set) func(Shape) Shape {
	return func(Shape) Shape { return slices.Repeat(Shape{{Set: set}}, n) }
}

// many returns the shape of any number of bytes out of a set.
func many(set Set) func(Shape) Shape {
	return func(Shape) Shape { return Shape{{Set: set, Star: true}} }
}

// newFilter compiles one filter step.
func newFilter(f lang.Filter, secrets map[string][]byte) (filter, error) {
	arg, err := arguments(f)
	if err != nil {
		return filter{}, err
	}
	out := filter{name: f.Name, src: f.Name + "(" + strings.Join(f.Args, ",") + ")", injective: true, shape: toAny}
	switch f.Name {
	case "pad":
		out.apply, out.shape = pad(arg), exactly(arg, digitSet)
	case "ordnum":
		out.apply, out.shape = ordnum, many(setOf("0123456789/~"))
	case "revstr":
		out.apply = revstr
	case "revms":
		limit, _ := strconv.ParseInt(f.Args[0], 10, 64)
		out.apply, out.shape = reversed(limit, len(f.Args[0])), exactly(len(f.Args[0]), digitSet)
	case "rev64":
		out.apply, out.shape = reversed(math.MaxInt64, 19), exactly(19, digitSet)
	case "domain":
		out.apply = domain
	case "iso_ms":
		out.apply, out.shape, out.injective = isoMillis, many(setOf("-0123456789")), false
	case "s_ms":
		out.apply, out.shape = secondMillis, many(setOf("-0123456789"))
	case "int":
		out.apply, out.shape = integer, many(setOf("-0123456789"))
	case "hmac":
		key, ok := secrets[f.Args[0]]
		if !ok {
			return out, fmt.Errorf("hmac: secret %q is not declared; add `secrets: {%s: \"${ENV_NAME}\"}`", f.Args[0], f.Args[0])
		}
		out.apply, out.shape, out.injective = keyed(key, arg), exactly(arg, hexSet), arg >= injectiveDigits
	case "hash":
		out.apply, out.shape, out.injective = hashed(arg), exactly(arg, hexSet), arg >= injectiveDigits
	case "hex":
		out.apply, out.shape = func(dst []byte, in string) ([]byte, error) { return hex.AppendEncode(dst, []byte(in)), nil },
			many(hexSet)
	case "b64":
		out.apply, out.shape = func(dst []byte, in string) ([]byte, error) {
			return base64.RawURLEncoding.AppendEncode(dst, []byte(in)), nil
		}, many(setOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
	case "lower":
		out.apply, out.injective = func(dst []byte, in string) ([]byte, error) {
			return append(dst, strings.ToLower(in)...),
				nil
		}, false
	}
	return out, nil
}

// arguments checks the number of arguments, and returns the last one as a number, 0 if the filter
// takes none.
func arguments(f lang.Filter) (n int, err error) {
	want := map[string]int{"pad": 1, "revms": 1, "hash": 1, "hmac": 2}[f.Name]
	names := make([]string, 0, len(Filters))
	for _, k := range Filters {
		names = append(names, k.Name)
	}
	if !slices.Contains(names, f.Name) {
		hint := "known: " + strings.Join(names, ", ")
		if near := problem.Nearest(f.Name, names); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		return 0, fmt.Errorf("there is no filter %q; %s", f.Name, hint)
	}
	if len(f.Args) != want {
		return 0, fmt.Errorf("filter %s takes %d arguments, not %d", f.Name, want, len(f.Args))
	}
	if want == 0 {
		return 0, nil
	}
	last := f.Args[want-1]
	v, err := strconv.ParseInt(last, 10, 64)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("filter %s: %q is not a number from 1", f.Name, last)
	}
	limit := map[string]int64{"pad": 100, "hash": 64, "hmac": 64, "revms": math.MaxInt64}[f.Name]
	if v > limit || (v < 8 && (f.Name == "hash" || f.Name == "hmac")) {
		return 0, fmt.Errorf("filter %s: %d is out of range (%s)", f.Name, v,
			map[string]string{"pad": "1 to 100", "hash": "8 to 64 hex digits", "hmac": "8 to 64 hex digits"}[f.Name])
	}
	return int(v), nil
}

// checkDigits refuses anything but digits without leading zeros: with them, two texts would become
// one number.
func checkDigits(name, in string) error {
	if !digits(in) {
		return Refuse("number", "filter %s takes digits only", name)
	}
	if len(in) > 1 && in[0] == '0' {
		return Refuse("number", "filter %s: a number with leading zeros would become the same as one without", name)
	}
	return nil
}

// pad returns the filter that writes digits with zeros in front, n in all.
func pad(n int) func([]byte, string) ([]byte, error) {
	zeros := strings.Repeat("0", n)
	return func(dst []byte, in string) ([]byte, error) {
		if err := checkDigits("pad", in); err != nil {
			return dst, err
		}
		if len(in) > n {
			return dst, Refuse("number", "filter pad(%d): the number has %d digits", n, len(in))
		}
		return append(append(dst, zeros[:n-len(in)]...), in...), nil
	}
}

func ordnum(dst []byte, in string) ([]byte, error) {
	if c, err := change.CanonicalNumber(in); err != nil || c != in {
		return dst, Refuse("number", "filter ordnum takes a number in DynamoDB's plain form")
	}
	return encode.OrderedNumber(dst, in)
}

// revstr writes the characters in reverse order.
func revstr(dst []byte, in string) ([]byte, error) {
	if !utf8.ValidString(in) {
		return dst, Refuse("text", "filter revstr takes text")
	}
	for len(in) > 0 {
		_, n := utf8.DecodeLastRuneInString(in)
		dst = append(dst, in[len(in)-n:]...)
		in = in[:len(in)-n]
	}
	return dst, nil
}

// reversed returns the filter that writes limit minus the number, with zeros in front up to width.
func reversed(limit int64, width int) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		if err := checkDigits("revms", in); err != nil {
			return dst, err
		}
		n, err := strconv.ParseInt(in, 10, 64)
		if err != nil || n > limit {
			return dst, Refuse("number", "a number to reverse is above the maximum %d", limit)
		}
		start := len(dst)
		dst = append(dst, "0000000000000000000"[:width]...)
		for r, i := limit-n, len(dst)-1; i >= start; i, r = i-1, r/10 {
			dst[i] = byte('0' + r%10)
		}
		return dst, nil
	}
}

// domain writes the labels of a domain name in reverse order.
func domain(dst []byte, in string) ([]byte, error) {
	for {
		dot := strings.LastIndexByte(in, '.')
		dst = append(dst, in[dot+1:]...)
		if dot < 0 {
			return dst, nil
		}
		dst = append(dst, '.')
		in = in[:dot]
	}
}

// isoLayouts are the forms of ISO 8601 that iso_ms takes.
var isoLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999",
	"2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02"}

func isoMillis(dst []byte, in string) ([]byte, error) {
	for _, layout := range isoLayouts {
		if t, err := time.Parse(layout, in); err == nil {
			return strconv.AppendInt(dst, t.UnixMilli(), 10), nil
		}
	}
	return dst, Refuse("time", "filter iso_ms: not an ISO 8601 date or time")
}

func secondMillis(dst []byte, in string) ([]byte, error) {
	if err := checkDigits("s_ms", in); err != nil {
		return dst, err
	}
	n, err := strconv.ParseInt(in, 10, 64)
	if err != nil || n > math.MaxInt64/1_000_000 {
		return dst, Refuse("time", "filter s_ms: the number of seconds is too large")
	}
	return strconv.AppendInt(dst, n*1000, 10), nil
}

func integer(dst []byte, in string) ([]byte, error) {
	if err := checkDigits("int", strings.TrimPrefix(in, "-")); err != nil || in == "-0" {
		return dst, errors.Join(err, Refuse("number", "filter int takes an integer"))
	}
	return append(dst, in...), nil
}

// keyed returns the filter hmac.
func keyed(key []byte, n int) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(in))
		return append(dst, hex.EncodeToString(h.Sum(nil))[:n]...), nil
	}
}

// hashed returns the filter hash.
func hashed(n int) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		h := sha256.Sum256([]byte(in))
		return append(dst, hex.EncodeToString(h[:])[:n]...), nil
	}
}
