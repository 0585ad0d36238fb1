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

// filterStep is a filter with its arguments, compiled: one step of a reference.
type filterStep struct {
	name      string
	src       string // name and arguments
	apply     func(dst []byte, in string) ([]byte, error)
	shape     func(in Shape) Shape
	injective bool
}

// Filter is a filter of the language.
type Filter struct {
	Name string
	Does string // for messages and documentation

	args     int    // how many arguments it takes; the last one is a number
	from, to int64  // the bounds of that number
	counts   string // what the number counts, for messages
	secret   bool   // the first argument names a secret

	// compile sets apply, and what differs from these: the filter may return any text (shape), and
	// two values never become one (injective).
	compile func(s *filterStep, a args)
}

// args are the arguments of a step.
type args struct {
	n    int64  // the last one
	text string // the last one, as the mapping has it
	key  []byte // the secret that the first one names
}

// Filters lists all filters. What the compiler needs of a filter is its entry here; tests hold the
// reference and its examples to this list.
var Filters = []Filter{
	{
		Name: "pad", Does: "pad(n): digits, with zeros in front up to n; longer, negative or zero-led numbers are refused",
		args: 1, from: 1, to: 100,
		compile: func(s *filterStep, a args) { s.apply, s.shape = pad(int(a.n)), exactly(int(a.n), digitSet) },
	},
	{
		Name: "ordnum", Does: "any number as text that sorts by value",
		compile: func(s *filterStep, _ args) { s.apply, s.shape = ordnum, many(setOf("0123456789/~")) },
	},
	{
		Name: "revstr", Does: "characters in reverse order: spreads sequential ids",
		compile: func(s *filterStep, _ args) { s.apply = revstr },
	},
	{
		Name: "revms", Does: "revms(max): max - n, so that the newest sorts first",
		args: 1, from: 1, to: math.MaxInt64,
		compile: func(s *filterStep, a args) {
			s.apply, s.shape = reversed(a.n, len(a.text)), exactly(len(a.text), digitSet)
		},
	},
	{
		Name: "rev64", Does: "9223372036854775807 - n in 19 digits: newest first",
		compile: func(s *filterStep, _ args) { s.apply, s.shape = reversed(math.MaxInt64, 19), exactly(19, digitSet) },
	},
	{
		Name: "domain", Does: "drive.google.com becomes com.google.drive",
		compile: func(s *filterStep, _ args) { s.apply = domain },
	},
	{
		Name: "iso_ms", Does: "ISO 8601 date or time as unix ms",
		compile: func(s *filterStep, _ args) { s.apply, s.shape, s.injective = isoMillis, many(integerSet), false },
	},
	{
		Name: "s_ms", Does: "unix seconds as ms",
		compile: func(s *filterStep, _ args) { s.apply, s.shape = secondMillis, many(integerSet) },
	},
	{
		Name: "int", Does: "an integer, checked",
		compile: func(s *filterStep, _ args) { s.apply, s.shape = integer, many(integerSet) },
	},
	{
		Name: "day", Does: "unix ms as the day in UTC: 2026-11-30",
		compile: func(s *filterStep, _ args) {
			s.apply, s.shape, s.injective = dated("day", time.DateOnly), ofLayout(time.DateOnly), false
		},
	},
	{
		Name: "hour", Does: "unix ms as the hour in UTC: 2026-11-30T15",
		compile: func(s *filterStep, _ args) {
			const layout = time.DateOnly + "T15"
			s.apply, s.shape, s.injective = dated("hour", layout), ofLayout(layout), false
		},
	},
	{
		Name: "div", Does: "div(n): how often n goes into an integer from 0: numbers in buckets",
		args: 1, from: 2, to: math.MaxInt64,
		compile: func(s *filterStep, a args) { s.apply, s.shape, s.injective = divided(a.n), many(digitSet), false },
	},
	{
		Name: "left", Does: "left(n): the first n characters",
		args: 1, from: 1, to: 1000, counts: " characters",
		compile: func(s *filterStep, a args) { s.apply, s.injective = leftmost(int(a.n)), false },
	},
	{
		Name: "hmac", Does: "hmac(secret,n): n hex digits of HMAC-SHA-256: for personal data",
		args: 2, from: 8, to: 64, counts: " hex digits", secret: true,
		compile: func(s *filterStep, a args) {
			s.apply, s.shape, s.injective = keyed(a.key, int(a.n)), exactly(int(a.n), hexSet), a.n >= injectiveDigits
		},
	},
	{
		Name: "hash", Does: "hash(n): n hex digits of SHA-256",
		args: 1, from: 8, to: 64, counts: " hex digits",
		compile: func(s *filterStep, a args) {
			s.apply, s.shape, s.injective = hashed(int(a.n)), exactly(int(a.n), hexSet), a.n >= injectiveDigits
		},
	},
	{
		Name: "hex", Does: "lower-case hex of the bytes",
		compile: func(s *filterStep, _ args) {
			s.apply = func(dst []byte, in string) ([]byte, error) { return hex.AppendEncode(dst, []byte(in)), nil }
			s.shape = many(hexSet)
		},
	},
	{
		Name: "b64", Does: "URL-safe base64 of the bytes, no padding",
		compile: func(s *filterStep, _ args) {
			s.apply = func(dst []byte, in string) ([]byte, error) {
				return base64.RawURLEncoding.AppendEncode(dst, []byte(in)), nil
			}
			s.shape = many(setOf("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
		},
	},
	{
		Name: "lower", Does: "lower case; different values may become the same",
		compile: func(s *filterStep, _ args) {
			s.apply = func(dst []byte, in string) ([]byte, error) { return append(dst, strings.ToLower(in)...), nil }
			s.injective = false
		},
	},
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

// compileFilter compiles one step of a reference.
func compileFilter(f lang.Filter, secrets map[string][]byte) (s filterStep, err error) {
	s = filterStep{name: f.Name, src: f.Name + "(" + strings.Join(f.Args, ",") + ")", injective: true, shape: toAny}
	named, err := filterNamed(f.Name)
	if err != nil {
		return s, err
	}
	a, err := named.arguments(f.Args)
	if err != nil {
		return s, err
	}
	if named.secret {
		secret := f.Args[0]
		var ok bool
		if a.key, ok = secrets[secret]; !ok {
			return s, fmt.Errorf("%s: secret %q is not declared; add `secrets: {%s: \"${ENV_NAME}\"}`", f.Name, secret, secret)
		}
	}
	named.compile(&s, a)
	return s, nil
}

// filterNamed returns the filter with a name.
func filterNamed(name string) (*Filter, error) {
	names := make([]string, 0, len(Filters))
	for i := range Filters {
		if Filters[i].Name == name {
			return &Filters[i], nil
		}
		names = append(names, Filters[i].Name)
	}
	hint := "known: " + strings.Join(names, ", ")
	if near := problem.Nearest(name, names); near != "" {
		hint = "did you mean " + near + "? " + hint
	}
	return nil, fmt.Errorf("there is no filter %q; %s", name, hint)
}

// arguments checks the arguments of a step.
func (f *Filter) arguments(given []string) (a args, err error) {
	if len(given) != f.args {
		return a, fmt.Errorf("filter %s takes %d arguments, not %d", f.Name, f.args, len(given))
	}
	if f.args == 0 {
		return a, nil
	}
	a.text = given[f.args-1]
	a.n, err = strconv.ParseInt(a.text, 10, 64)
	if err != nil || a.n < 1 {
		return a, fmt.Errorf("filter %s: %q is not a number from 1", f.Name, a.text)
	}
	if a.n < f.from || a.n > f.to {
		return a, fmt.Errorf("filter %s: %d is out of range (%d to %d%s)", f.Name, a.n, f.from, f.to, f.counts)
	}
	return a, nil
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
