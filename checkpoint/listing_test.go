package checkpoint_test

import (
	"github.com/tailrace-cdc/replicator/checkpoint"
	"github.com/tailrace-cdc/replicator/checkpoint/listing"
)

func init() { checkpoint.SplitStart, checkpoint.DiffListing = listing.Split, listing.Diff }
