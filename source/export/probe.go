package export

import (
	"context"
	"fmt"

	"github.com/tailrace-cdc/replicator/source"
)

// MayList checks that the place of exports can be listed, which reading any export there needs. It
// writes nothing. A place that holds no export yet is fine.
func MayList(ctx context.Context, url string, src *source.Source) error {
	s, key, err := openStore(ctx, url, src)
	if err != nil {
		return wrap(ctx, "open "+url, err)
	}
	if _, _, err := s.list(ctx, key); err != nil {
		return wrap(ctx, fmt.Sprintf("list %s", url), err)
	}
	return nil
}
