package change

import "fmt"

// Members calls f with each member of a JSON object, and stops at f's first error. name is raw:
// escapes stand in it as they are. name and value alias raw. The structure is checked, the members'
// own contents are not.
func Members(raw []byte, f func(name, value []byte) error) error {
	var failed error
	end := scanObject(raw, 0, func(name []byte, v int) int {
		end := skipValue(raw, v)
		if end > 0 {
			if failed = f(name, raw[v:end]); failed != nil {
				return -1
			}
		}
		return end
	})
	return wholeValue("object", raw, end, failed)
}

// Elements calls f with each element of a JSON array, and stops at f's first error. The elements
// alias raw. The structure is checked, the elements' own contents are not.
func Elements(raw []byte, f func(value []byte) error) error {
	var failed error
	end := scanArray(raw, skipSpace(raw, 0), func(v int) int {
		end := skipValue(raw, v)
		if end > 0 {
			if failed = f(raw[v:end]); failed != nil {
				return -1
			}
		}
		return end
	})
	return wholeValue("array", raw, end, failed)
}

// wholeValue returns the error of a scan that ended at end: the callback's own, or that raw is not
// one value.
func wholeValue(kind string, raw []byte, end int, failed error) error {
	if failed != nil {
		return failed
	}
	if end < 0 || skipSpace(raw, end) != len(raw) {
		return fmt.Errorf("scan %s of %d bytes: %w", kind, len(raw), ErrMalformed)
	}
	return nil
}
