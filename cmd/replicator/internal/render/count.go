package render

import "github.com/dustin/go-humanize/english"

// Count returns "1 error" or "2 errors".
func Count(n int, noun string) string { return english.Plural(n, noun, "") }
