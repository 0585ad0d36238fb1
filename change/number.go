package change

import (
	"fmt"
	"strconv"
	"strings"
)

// The service's number range: 38 significant digits, magnitudes 1E-130 to 9.99E+125. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	maxDigits   = 38
	maxExponent = 125
	minExponent = -130
	// plainExponent: up to here a number is written without an exponent.
	plainExponent = 40
)

// CanonicalNumber writes a DynamoDB number in one form per value: no leading or trailing zeros, no
// "+", "0" and never "-0"; plain decimals up to an exponent of ±40, "d.dddE+xx" beyond. Any
// notation that JSON or the service uses is read. It fails for what is not a number, or outside the
// service's range.
func CanonicalNumber(s string) (string, error) {
	if plainInteger(s) {
		return s, nil
	}
	neg, digits, exp, err := parseNumber(s)
	if err != nil {
		return "", err
	}
	if digits == "" {
		return "0", nil
	}
	// The number is 0.digits * 10^exp; the scientific exponent is exp-1.
	if len(digits) > maxDigits || exp-1 > maxExponent || exp-1 < minExponent {
		return "", fmt.Errorf("number %.50q is outside DynamoDB's range of 38 digits and 1E-130 to 9.99E+125", s)
	}
	out := make([]byte, 0, len(digits)+8)
	if neg {
		out = append(out, '-')
	}
	return string(appendNumber(out, digits, exp)), nil
}

// appendNumber appends 0.digits * 10^exp, as a plain decimal or with an exponent.
func appendNumber(out []byte, digits string, exp int) []byte {
	switch {
	case exp-1 > plainExponent || exp-1 < -plainExponent:
		out = append(out, digits[0])
		if len(digits) > 1 {
			out = append(append(out, '.'), digits[1:]...)
		}
		out = append(out, 'E')
		if exp-1 > 0 {
			out = append(out, '+')
		}
		return strconv.AppendInt(out, int64(exp-1), 10)
	case exp <= 0:
		out = append(out, '0', '.')
		out = append(out, strings.Repeat("0", -exp)...)
		return append(out, digits...)
	case exp >= len(digits):
		out = append(out, digits...)
		return append(out, strings.Repeat("0", exp-len(digits))...)
	default:
		out = append(append(out, digits[:exp]...), '.')
		return append(out, digits[exp:]...)
	}
}

// plainInteger reports whether s is an integer that is canonical as it stands, as most numbers are.
func plainInteger(s string) bool {
	t := strings.TrimPrefix(s, "-")
	if t == "" || len(t) > maxDigits || t[0] == '0' {
		return s == "0"
	}
	for i := range len(t) {
		if t[i] < '0' || t[i] > '9' {
			return false
		}
	}
	return true
}

// parseNumber returns the significant digits without leading or trailing zeros (empty for zero) and
// the exponent such that the value is 0.digits * 10^exp.
func parseNumber(s string) (neg bool, digits string, exp int, err error) {
	bad := func() error { return fmt.Errorf("%.50q is not a number", s) }
	t := s
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg, t = t[0] == '-', t[1:]
	}
	if i := strings.IndexAny(t, "eE"); i >= 0 {
		if exp, err = strconv.Atoi(t[i+1:]); err != nil || exp > 100_000 || exp < -100_000 {
			return false, "", 0, bad()
		}
		t = t[:i]
	}
	whole, frac, _ := strings.Cut(t, ".")
	all := whole + frac
	if all == "" {
		return false, "", 0, bad()
	}
	for i := range len(all) {
		if all[i] < '0' || all[i] > '9' {
			return false, "", 0, bad()
		}
	}
	exp += len(whole)
	trimmed := strings.TrimLeft(all, "0")
	exp -= len(all) - len(trimmed)
	return neg, strings.TrimRight(trimmed, "0"), exp, nil
}
