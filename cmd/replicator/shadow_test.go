package main

import (
	"testing"

	"github.com/tailrace-cdc/replicator/config"
)

func TestSharesThatAreNone(t *testing.T) {
	for _, text := range []string{"x", "-1%", "101%", "2", "NaN", "nan%", "1%%"} {
		if share, err := shareOf(text, config.Shadow{}); err == nil {
			t.Errorf("%q: %v", text, share)
		}
	}
	if share, err := shareOf("1%", config.Shadow{}); err != nil || share != 0.01 {
		t.Errorf("%v, %v", share, err)
	}
	if share, err := shareOf("", config.Shadow{Share: 0.25}); err != nil || share != 0.25 {
		t.Errorf("of the configuration: %v, %v", share, err)
	}
}
