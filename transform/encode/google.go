package encode

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/tailrace-cdc/replicator/change"
)

// Google appends what Google's DynamoDB to Bigtable Migration Utility writes for a value: all
// scalars as text, binary as base64 of its base64 text, collections as JSON in the order in which
// Java's hash collections hand them out. It reproduces the tool's mistakes on purpose; for numbers
// on which the tool fails (integers beyond 64 bits) it writes their text.
func Google(dst []byte, v *change.Value) ([]byte, error) {
	switch v.Kind {
	case change.KindString:
		return append(dst, v.S...), nil
	case change.KindNumber:
		return append(dst, javaNumber(v.S)...), nil
	case change.KindBinary:
		return appendBase64(dst, []byte(v.S)), nil
	case change.KindBool:
		return strconv.AppendBool(dst, v.Bool), nil
	case change.KindNull:
		return dst, nil
	}
	return appendGoogle(dst, v), nil
}

// appendGoogle appends a value inside of a collection.
func appendGoogle(dst []byte, v *change.Value) []byte {
	switch v.Kind {
	case change.KindNull:
		return append(dst, "null"...)
	case change.KindBool:
		return strconv.AppendBool(dst, v.Bool)
	case change.KindNumber:
		return append(dst, javaNumber(v.S)...)
	case change.KindBinary:
		return append(appendBase64(append(dst, '"'), []byte(v.S)), '"')
	case change.KindList:
		return appendEach(dst, v.L, nil)
	case change.KindMap:
		return appendGoogleMap(dst, v.M)
	case change.KindStringSet, change.KindNumberSet, change.KindBinarySet:
		return appendEach(dst, v.L, javaOrder(len(v.L), func(i int) uint32 { return memberHash(&v.L[i]) }))
	}
	return appendGson(dst, v.S)
}

// appendEach appends a JSON array, in the given order if there is one.
func appendEach(dst []byte, l []change.Value, order []int) []byte {
	dst = append(dst, '[')
	for i := range l {
		if i > 0 {
			dst = append(dst, ',')
		}
		at := i
		if order != nil {
			at = order[i]
		}
		dst = appendGoogle(dst, &l[at])
	}
	return append(dst, ']')
}

func appendGoogleMap(dst []byte, m []change.Attr) []byte {
	dst = append(dst, '{')
	for i, at := range javaOrder(len(m), func(i int) uint32 { return javaHash(m[i].Name) }) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendGson(dst, m[at].Name), ':')
		dst = appendGoogle(dst, &m[at].Value)
	}
	return append(dst, '}')
}

// javaOrder returns the order in which a java.util.HashMap iterates over n keys with these hashes:
// by bucket, within a bucket by insertion. The table has 16 buckets and doubles above three
// quarters.
func javaOrder(n int, hash func(int) uint32) []int {
	buckets := 16
	for n*4 > buckets*3 {
		buckets *= 2
	}
	order := make([]int, n)
	bucket := make([]uint32, n)
	for i := range order {
		order[i] = i
		h := hash(i)
		bucket[i] = (h ^ h>>16) & uint32(buckets-1)
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(bucket[a]) - int(bucket[b]) })
	return order
}

// javaHash returns java.lang.String.hashCode, which runs over UTF-16 code units.
func javaHash(s string) (h uint32) {
	for _, u := range utf16.Encode([]rune(s)) {
		h = 31*h + uint32(u)
	}
	return h
}

// memberHash returns the hash code of a set's member in the tool's type: String, Long or
// BigDecimal.
func memberHash(v *change.Value) uint32 {
	switch v.Kind {
	case change.KindNumber:
		return numberHash(v.S)
	case change.KindBinary:
		return javaHash(base64.StdEncoding.EncodeToString([]byte(v.S)))
	}
	return javaHash(v.S)
}

// numberHash returns Long.hashCode for numbers without a point, BigDecimal.hashCode for the others.
func numberHash(s string) uint32 {
	if !strings.Contains(s, ".") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return uint32(n) ^ uint32(uint64(n)>>32)
		}
	}
	unscaled, scale, ok := parseDecimal(s)
	if !ok {
		return javaHash(s)
	}
	var h uint32
	magnitude := new(big.Int).Abs(unscaled).Bytes()
	for len(magnitude)%4 != 0 {
		magnitude = append([]byte{0}, magnitude...)
	}
	for ; len(magnitude) > 0; magnitude = magnitude[4:] {
		h = 31*h + binary.BigEndian.Uint32(magnitude)
	}
	if unscaled.Sign() < 0 {
		h = -h
	}
	return 31*h + uint32(scale)
}

// parseDecimal splits a number as java.math.BigDecimal does.
func parseDecimal(s string) (unscaled *big.Int, scale int, ok bool) {
	mantissa, exponent, _ := strings.Cut(strings.ReplaceAll(s, "e", "E"), "E")
	exp, _ := strconv.Atoi(exponent)
	whole, frac, _ := strings.Cut(mantissa, ".")
	unscaled, ok = new(big.Int).SetString(whole+frac, 10)
	return unscaled, len(frac) - exp, ok
}

// javaNumber returns Long.toString for numbers without a point, BigDecimal.toString for the others.
func javaNumber(s string) string {
	if !strings.Contains(s, ".") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return strconv.FormatInt(n, 10)
		}
	}
	return bigDecimal(s)
}

// bigDecimal returns java.math.BigDecimal.toString: with the scale as written, and scientific
// notation if the scale is negative or the adjusted exponent below -6.
func bigDecimal(s string) string {
	unscaled, scale, ok := parseDecimal(s)
	if !ok {
		return s
	}
	digits := new(big.Int).Abs(unscaled).String()
	sign := ""
	if unscaled.Sign() < 0 {
		sign = "-"
	}
	adjusted := len(digits) - 1 - scale
	if scale >= 0 && adjusted >= -6 {
		return sign + placePoint(digits, scale)
	}
	out := digits[:1]
	if len(digits) > 1 {
		out += "." + digits[1:]
	}
	if adjusted != 0 {
		out += "E"
		if adjusted > 0 {
			out += "+"
		}
		out += strconv.Itoa(adjusted)
	}
	return sign + out
}

func placePoint(digits string, scale int) string {
	if scale == 0 {
		return digits
	}
	if pad := scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	return digits[:len(digits)-scale] + "." + digits[len(digits)-scale:]
}

// appendGson appends a JSON string as Gson writes it without HTML escaping: U+2028 and U+2029 are
// escaped.
func appendGson(dst []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == '"' || s[i] == '\\' || s[i] >= 0x80 {
			return appendGsonEscaped(dst, s)
		}
	}
	return append(append(append(dst, '"'), s...), '"')
}

func appendGsonEscaped(dst []byte, s string) []byte {
	var sb strings.Builder
	enc := json.NewEncoder(&sb)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return append(dst, `""`...)
	}
	return append(dst, strings.TrimSuffix(sb.String(), "\n")...)
}
