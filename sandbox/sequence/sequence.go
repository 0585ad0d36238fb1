// Package sequence writes and reads stream sequence numbers: decimal strings of 21 to 40 digits,
// each of which stands for a position in one count that only grows.
//
// The numbers start shortly below a power of ten, so that they gain a digit early in a stream's
// life: a consumer that compares them as text fails.
package sequence

import (
	"math"
	"strconv"
	"strings"
)

// The forms of numbers. A number is written as leading digits and a low part of lowDigits, or as 1,
// zeros and the largest part of highDigits.
const (
	minDigits  = 21
	maxDigits  = 40
	lowDigits  = 18
	highDigits = 20                        // of the largest uint64
	lowSpan    = 1_000_000_000_000_000_000 // 10^lowDigits
)

// Numbers maps positions to sequence numbers, one to one and in order.
type Numbers struct {
	Digits int    // of the numbers before the count crosses the power of ten
	Below  uint64 // how far below the power of ten position 0 is
}

// New returns numbers that begin with that many digits and gain one after below positions. digits
// is limited to 21..39.
func New(digits int, below uint64) Numbers {
	return Numbers{Digits: min(max(digits, minDigits), maxDigits-1), Below: min(max(below, 1), lowSpan-1)}
}

// Append appends the sequence number of position n.
func (s Numbers) Append(dst []byte, n uint64) []byte {
	if n < s.Below {
		dst = pad(dst, '9', s.Digits-lowDigits)
		return appendDigits(dst, lowSpan-s.Below+n, lowDigits)
	}
	n -= s.Below
	dst = append(dst, '1')
	dst = pad(dst, '0', s.Digits-highDigits)
	return appendDigits(dst, n, highDigits)
}

// Text returns the sequence number of position n.
func (s Numbers) Text(n uint64) string { return string(s.Append(make([]byte, 0, maxDigits), n)) }

// Parse returns the position of a sequence number. A number of the right form that no position has
// is mapped to the nearest position above it. ok is false unless text has 21 to 40 decimal digits.
func (s Numbers) Parse(text string) (n uint64, ok bool) {
	if len(text) < minDigits || len(text) > maxDigits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	switch {
	case len(text) < s.Digits:
		return 0, true
	case len(text) == s.Digits:
		return s.parseBelow(text), true
	case len(text) == s.Digits+1:
		return s.parseAbove(text), true
	}
	return math.MaxUint64, true
}

// parseBelow parses a number below the power of ten.
func (s Numbers) parseBelow(text string) uint64 {
	head, low := text[:s.Digits-lowDigits], text[s.Digits-lowDigits:]
	if strings.Trim(head, "9") != "" {
		return 0
	}
	v, _ := strconv.ParseUint(low, 10, 64)
	if first := lowSpan - s.Below; v >= first {
		return v - first
	}
	return 0
}

// parseAbove parses a number at or above the power of ten.
func (s Numbers) parseAbove(text string) uint64 {
	cut := s.Digits + 1 - highDigits
	if text[0] != '1' || strings.Trim(text[1:cut], "0") != "" {
		return math.MaxUint64
	}
	v, err := strconv.ParseUint(text[cut:], 10, 64)
	if err != nil || v > math.MaxUint64-s.Below {
		return math.MaxUint64
	}
	return v + s.Below
}

// pad appends n copies of c.
func pad(dst []byte, c byte, n int) []byte {
	for range n {
		dst = append(dst, c)
	}
	return dst
}

// appendDigits appends the last count digits of v, with leading zeros.
func appendDigits(dst []byte, v uint64, count int) []byte {
	dst = pad(dst, '0', count)
	for i := len(dst) - 1; i >= len(dst)-count; i-- {
		dst[i], v = byte('0'+v%10), v/10
	}
	return dst
}
