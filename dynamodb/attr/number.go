package attr

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/dynamodb/wire"
)

// The limits of numbers: 38 significant digits, magnitudes 1E-130 to 9.99…E+125.
const (
	maxDigits   = 38
	maxExponent = 125
	minExponent = -130
)

// Normalize returns the normal form of a number's text: plain decimal without unneeded zeros, "0"
// for zero, never an exponent. The error is the service's.
func Normalize(text string) (string, *wire.Error) {
	if isPlainInt(text) {
		return text, nil
	}
	d, ok := parseDecimal(text)
	switch {
	case text == "":
		return "", wire.Invalid("The parameter cannot be converted to a numeric value")
	case !ok:
		return "", wire.Invalid("The parameter cannot be converted to a numeric value: %s", text)
	}
	if err := d.check(); err != nil {
		return "", err
	}
	return d.text(), nil
}

// isPlainInt reports whether a text is a short integer in normal form: the fast path for the most
// common numbers.
func isPlainInt(s string) bool {
	if len(s) == 0 || len(s) > 18 || s[0] == '0' && len(s) > 1 {
		return false
	}
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// decimal is ±0.d₁d₂… · 10^exp with d₁ and the last digit not zero; no digits is zero.
type decimal struct {
	negative bool
	digits   string
	exp      int
}

// parseDecimal parses a number with or without an exponent; ok is false for any other text.
func parseDecimal(s string) (d decimal, ok bool) {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		d.negative = s[0] == '-'
		s = s[1:]
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		exp, err := strconv.Atoi(s[i+1:])
		if err != nil || s[i+1] == '_' {
			return d, false
		}
		d.exp = exp
		s = s[:i]
	}
	whole, frac, _ := strings.Cut(s, ".")
	all := whole + frac
	if all == "" {
		return d, false
	}
	for i := 0; i < len(all); i++ {
		if all[i] < '0' || all[i] > '9' {
			return d, false
		}
	}
	d.exp += len(whole)
	d.trim(all)
	return d, true
}

// trim sets the digits without leading and trailing zeros, and adapts the exponent.
func (d *decimal) trim(digits string) {
	short := strings.TrimLeft(digits, "0")
	d.exp -= len(digits) - len(short)
	d.digits = strings.TrimRight(short, "0")
	if d.digits == "" {
		*d = decimal{}
	}
}

var errOverflow = wire.Invalid("Number overflow. Attempting to store a number with magnitude larger than supported " +
	"range")

// check checks a number against the service's limits.
func (d *decimal) check() *wire.Error {
	switch {
	case d.digits == "":
		return nil
	case d.exp-1 > maxExponent:
		return errOverflow
	case d.exp-1 < minExponent:
		return wire.Invalid("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case len(d.digits) > maxDigits:
		return wire.Invalid("Attempting to store more than 38 significant digits in a Number")
	}
	return nil
}

// text returns the normal form.
func (d *decimal) text() string {
	if d.digits == "" {
		return "0"
	}
	var b strings.Builder
	if d.negative {
		b.WriteByte('-')
	}
	switch n := len(d.digits); {
	case d.exp <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -d.exp))
		b.WriteString(d.digits)
	case d.exp >= n:
		b.WriteString(d.digits)
		b.WriteString(strings.Repeat("0", d.exp-n))
	default:
		b.WriteString(d.digits[:d.exp])
		b.WriteByte('.')
		b.WriteString(d.digits[d.exp:])
	}
	return b.String()
}

// CompareNumbers orders two numbers in normal form by value.
func CompareNumbers(a, b string) int {
	if a == b {
		return 0
	}
	if isPlainInt(a) && isPlainInt(b) {
		if len(a) != len(b) {
			return sign(len(a) - len(b))
		}
		return strings.Compare(a, b)
	}
	x, _ := parseDecimal(a)
	y, _ := parseDecimal(b)
	if x.rank() != y.rank() {
		return sign(x.rank() - y.rank())
	}
	order := sign(x.exp - y.exp)
	if order == 0 {
		order = strings.Compare(x.digits, y.digits)
	}
	return order * x.rank()
}

// rank returns the sign: -1, 0 or 1.
func (d *decimal) rank() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

// sign returns -1, 0 or 1.
func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

// Add returns a+b, or a-b, of two numbers in normal form. A result outside the limits is an error.
// To the service a result with more than 38 digits is an overflow, whatever its magnitude.
func Add(a, b string, minus bool) (string, *wire.Error) {
	x, _ := parseDecimal(a)
	y, _ := parseDecimal(b)
	scale := min(x.exp-len(x.digits), y.exp-len(y.digits))
	sum, other := x.integer(scale), y.integer(scale)
	if minus {
		sum.Sub(sum, other)
	} else {
		sum.Add(sum, other)
	}
	d := decimal{negative: sum.Sign() < 0}
	digits := sum.Abs(sum).String()
	d.exp = scale + len(digits)
	d.trim(digits)
	if len(d.digits) > maxDigits {
		return "", errOverflow
	}
	if err := d.check(); err != nil {
		return "", err
	}
	return d.text(), nil
}

// integer returns the value divided by 10^scale, which must be an integer.
func (d *decimal) integer(scale int) *big.Int {
	if d.digits == "" {
		return new(big.Int)
	}
	v, _ := new(big.Int).SetString(d.digits+strings.Repeat("0", d.exp-len(d.digits)-scale), 10)
	if d.negative {
		v.Neg(v)
	}
	return v
}

// AppendSortable appends a number in normal form as bytes that compare as the numbers do.
func AppendSortable(b []byte, text string) []byte {
	d, _ := parseDecimal(text)
	if d.digits == "" {
		return append(b, 1)
	}
	exp := d.exp + 0x200
	if !d.negative {
		b = append(b, 2, byte(exp>>8), byte(exp))
		return append(b, d.digits...)
	}
	b = append(b, 0, ^byte(exp>>8), ^byte(exp))
	for i := 0; i < len(d.digits); i++ {
		b = append(b, ^d.digits[i])
	}
	return append(b, 0xff)
}

// numberSize returns the size of a number as the service counts it: a byte for two digits, one
// more, and one for a sign.
func numberSize(text string) int {
	d, _ := parseDecimal(text)
	if d.digits == "" {
		return 1
	}
	n := len(d.digits)
	size := 1 + (n+1)/2
	if n%2 == 0 && d.exp%2 != 0 {
		size++
	}
	if d.negative {
		size++
	}
	return size
}
