package encode

import (
	"slices"
	"strings"

	"github.com/tailrace-cdc/replicator/change"
)

// Types appends a JSON object from attribute to type for all wanted attributes that are not
// strings, sorted by name, and nothing if there are none. With it, natural encodings can be
// decoded.
func Types(dst []byte, img change.Image, want func(name string) bool) []byte {
	var named []*change.Attr
	for i := range img {
		if img[i].Value.Kind != change.KindString && want(img[i].Name) {
			named = append(named, &img[i])
		}
	}
	slices.SortFunc(named, func(a, b *change.Attr) int { return strings.Compare(a.Name, b.Name) })
	for i, a := range named {
		sep := byte(',')
		if i == 0 {
			sep = '{'
		}
		dst = append(change.AppendString(append(dst, sep), a.Name), ':', '"')
		dst = append(append(dst, a.Value.Kind.String()...), '"')
	}
	if len(named) > 0 {
		dst = append(dst, '}')
	}
	return dst
}
