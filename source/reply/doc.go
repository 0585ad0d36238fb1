// Package reply takes the items out of raw replies to Scan and BatchGetItem, without decoding them, and refuses what
// proves neither that a table has ended nor that an item is absent.
package reply
