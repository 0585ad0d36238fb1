package tmpl

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// divided returns the filter div: how often n goes into a number.
func divided(n int64) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		if err := checkDigits("div", in); err != nil {
			return dst, err
		}
		v, err := strconv.ParseInt(in, 10, 64)
		if err != nil {
			return dst, Refuse("number", "filter div takes a number below %d", math.MaxInt64)
		}
		return strconv.AppendInt(dst, v/n, 10), nil
	}
}

// leftmost returns the filter left: the first n characters.
func leftmost(n int) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		if !utf8.ValidString(in) {
			return dst, Refuse("text", "filter left takes text")
		}
		end := 0
		for range n {
			_, size := utf8.DecodeRuneInString(in[end:])
			end += size
		}
		return append(dst, in[:end]...), nil
	}
}

// lastMillis is the last millisecond of the year 9999: later dates have more digits.
const lastMillis = 253_402_300_799_999

// dated returns the filter that writes unix milliseconds as a part of a date in UTC.
func dated(name, layout string) func([]byte, string) ([]byte, error) {
	return func(dst []byte, in string) ([]byte, error) {
		if err := checkDigits(name, in); err != nil {
			return dst, err
		}
		ms, err := strconv.ParseInt(in, 10, 64)
		if err != nil || ms > lastMillis {
			return dst, Refuse("time", "filter %s takes unix milliseconds up to the year 9999", name)
		}
		return time.UnixMilli(ms).UTC().AppendFormat(dst, layout), nil
	}
}

// ofLayout is the shape of dates in a layout.
func ofLayout(layout string) func(Shape) Shape {
	return func(Shape) (out Shape) {
		for i := range len(layout) {
			if c := layout[i]; c >= '0' && c <= '9' {
				out = append(out, State{Set: digitSet})
			} else {
				out = append(out, Text(layout[i:i+1])...)
			}
		}
		return out
	}
}
