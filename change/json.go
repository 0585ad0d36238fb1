package change

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// AppendJSON appends the value in DynamoDB's typed JSON, in one canonical form: members of maps and
// sets sorted, numbers canonical where they can be, no white space. Equal values give equal bytes.
func (v Value) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{', '"')
	dst = append(dst, v.Kind.String()...)
	dst = append(dst, '"', ':')
	switch v.Kind {
	case KindNull:
		dst = append(dst, "true"...)
	case KindBool:
		if v.Bool {
			dst = append(dst, "true"...)
		} else {
			dst = append(dst, "false"...)
		}
	case KindString, KindBinary:
		dst = AppendString(dst, v.S)
	case KindNumber:
		dst = AppendString(dst, canonicalOr(v.S))
	case KindStringSet, KindBinarySet, KindNumberSet:
		dst = appendSet(dst, v)
	case KindList:
		dst = append(dst, '[')
		for i, e := range v.L {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.AppendJSON(dst)
		}
		dst = append(dst, ']')
	case KindMap:
		dst = Image(v.M).AppendJSON(dst)
	}
	return append(dst, '}')
}

// AppendJSON appends the image as an object of typed values, sorted by name.
func (m Image) AppendJSON(dst []byte) []byte {
	var few [32]int
	order := few[:0]
	for i := range m {
		order = append(order, i)
	}
	// Sort indices instead of the attributes, which are large.
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(m[a].Name, m[b].Name) })
	dst = append(dst, '{')
	for n, i := range order {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(AppendString(dst, m[i].Name), ':')
		dst = m[i].Value.AppendJSON(dst)
	}
	return append(dst, '}')
}

// appendSet appends the members of a set, sorted.
func appendSet(dst []byte, v Value) []byte {
	members := make([]string, len(v.L))
	for i, e := range v.L {
		members[i] = e.S
		if v.Kind == KindNumberSet {
			members[i] = canonicalOr(e.S)
		}
	}
	slices.Sort(members)
	dst = append(dst, '[')
	for i, s := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, s)
	}
	return append(dst, ']')
}

// canonicalOr returns the canonical form of a number, or s when it is not one.
func canonicalOr(s string) string {
	if c, err := CanonicalNumber(s); err == nil {
		return c
	}
	return s
}

const hexDigits = "0123456789abcdef"

// plain are the bytes that are one rune each and need no escape in a JSON string.
var plain = func() (t [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return
}()

// AppendString appends s as a JSON string with the fewest escapes. Bytes that are not UTF-8, which
// DynamoDB never stores, become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plain[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}
