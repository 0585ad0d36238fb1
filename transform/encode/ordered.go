package encode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// OrderedNumber appends text that sorts by value, for any number of DynamoDB: zero is "1"; positive
// numbers are "2", the exponent + 500 in three digits, the significant digits, and "/"; negative
// numbers are "0", the nines' complement of these digits, and "~", so that longer ones sort first.
func OrderedNumber(dst []byte, s string) ([]byte, error) {
	c, err := change.CanonicalNumber(s)
	if err != nil {
		return dst, err
	}
	if c == "0" {
		return append(dst, '1'), nil
	}
	negative := c[0] == '-'
	digits, exp := significant(strings.TrimPrefix(c, "-"))
	text := fmt.Sprintf("%03d%s", exp+500, digits)
	if !negative {
		return append(append(append(dst, '2'), text...), '/'), nil
	}
	dst = append(dst, '0')
	for i := range len(text) {
		dst = append(dst, '9'-text[i]+'0')
	}
	return append(dst, '~'), nil
}

// significant splits an unsigned canonical number into its digits and the exponent of 0.digits.
func significant(c string) (digits string, exp int) {
	mantissa, e, _ := strings.Cut(c, "E")
	if e != "" {
		exp, _ = strconv.Atoi(e)
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	all := whole + frac
	exp += len(whole)
	trimmed := strings.TrimLeft(all, "0")
	exp -= len(all) - len(trimmed)
	return strings.TrimRight(trimmed, "0"), exp
}
