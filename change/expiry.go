package change

import (
	"math/big"
	"time"
)

// longExpired is how long a time to live must be over so that DynamoDB leaves the item alone.
// Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/howitworks-ttl.html
const longExpired = 5 * 365 * 24 * time.Hour

// HadExpired reports whether DynamoDB's time to live may have deleted an item at a time. expiry is
// the item's attribute in epoch seconds. A time that was more than five years past, 0 for one,
// never expires: such deletions are the user's.
func HadExpired(expiry string, at Millis) bool {
	ttl, ok := new(big.Rat).SetString(expiry)
	return ok && ttl.Cmp(big.NewRat(int64(at), 1000)) <= 0 &&
		ttl.Cmp(big.NewRat(int64(at)-longExpired.Milliseconds(), 1000)) >= 0
}
