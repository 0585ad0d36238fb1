package apply

import "github.com/tailrace-cdc/replicator/transform"

// Classes selects the deletions that are archived besides deletions by DynamoDB's own TTL.
type Classes struct{ User, Inferred bool }

func (c Classes) others() bool { return c.User || c.Inferred }

// of returns the class under which an event is archived, "" for none. A deletion that TTL in
// another region may have made cannot be told from one by a user: where only those by users are
// wanted, it counts as one of them.
func (c Classes) of(class transform.EventClass) transform.EventClass {
	switch {
	case class == transform.ClassTTL:
	case class == transform.ClassInferred && c.Inferred:
	case c.User:
		return transform.ClassUser
	default:
		return ""
	}
	return class
}
