package bigtable

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
)

func TestSecondPipelineFindsTheTargetTaken(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if owner, err := c.TargetOwner(t.Context(), "products"); owner != "" || err != nil {
			t.Fatalf("before the first claim: %q, %v", owner, err)
		}
		for _, pipeline := range []string{"shop", "shop", "other"} {
			if owner, err := c.ClaimTarget(t.Context(), pipeline, "products"); owner != "shop" || err != nil {
				t.Errorf("claim by %s: %q, %v", pipeline, owner, err)
			}
		}
		if owner, err := c.ClaimTarget(t.Context(), "other", "orders"); owner != "other" || err != nil {
			t.Errorf("claim of another target: %q, %v", owner, err)
		}
		if name := c.TargetName("products"); !strings.HasPrefix(name, "projects/") ||
			!strings.HasSuffix(name, "/tables/products") {
			t.Errorf("name %q", name)
		}
	})
}

func TestOfPipelinesThatClaimATargetAtOnceOneHasIt(t *testing.T) {
	c, f := rig(t)
	f.fates(func(n int) fate { return []fate{pass, lose, refuse}[n%3] })
	owners := make([]string, 8)
	var all sync.WaitGroup
	for i := range owners {
		all.Go(func() {
			owner, err := c.ClaimTarget(t.Context(), fmt.Sprint("pipeline-", i), "products")
			if err != nil {
				t.Error(err)
			}
			owners[i] = owner
		})
	}
	all.Wait()
	for i, owner := range owners {
		if owner != owners[0] || !strings.HasPrefix(owner, "pipeline-") {
			t.Errorf("pipeline-%d heard that %q has the target, pipeline-0 heard %q", i, owner, owners[0])
		}
	}
}

func TestNewerTargetRowIsRefused(t *testing.T) {
	c, _ := rig(t)
	x := &stateCell{key: []byte(c.TargetKey("products")), qualifier: targetQualifier,
		value: []byte(`{"format":9,"pipeline":"shop"}`)}
	if _, err := c.setIf(t.Context(), x, columnFilter(targetQualifier), false); err != nil {
		t.Fatal(err)
	}
	var newer *NewerFormatError
	if _, err := c.ClaimTarget(t.Context(), "shop", "products"); !errors.As(err, &newer) || newer.Have != 9 {
		t.Errorf("claim: %v", err)
	}
}

func TestMappingIsStoredBesideItsHash(t *testing.T) {
	everyServer(t, func(t *testing.T, c *Client) {
		if _, err := c.LoadMapping(t.Context(), "shop", "Products", "h1"); !errors.Is(err, ErrNoMapping) {
			t.Fatalf("before it is kept: %v", err)
		}
		one, two := []byte("rules: one"), bytes.Repeat([]byte("a long mapping\n"), 100_000)
		for hash, text := range map[string][]byte{"h1": one, "h2": two, "h3": {}} {
			for range 2 {
				if err := c.StoreMapping(t.Context(), "shop", "Products", hash, text); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := c.LoadState(t.Context(), "shop", "Products"); !errors.Is(err, ErrNoState) {
			t.Errorf("a kept mapping is no state: %v", err)
		}
		s := firstState()
		if err := c.CreateState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		next := *s
		next.Issued = true
		if err := c.CompareAndSet(t.Context(), s, &next); err != nil {
			t.Fatal(err)
		}
		for hash, text := range map[string][]byte{"h1": one, "h2": two, "h3": {}} {
			got, err := c.LoadMapping(t.Context(), "shop", "Products", hash)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: %d bytes, %v; want %d", hash, len(got), err, len(text))
			}
		}
		if _, err := c.LoadMapping(t.Context(), "shop", "Orders", "h1"); !errors.Is(err, ErrNoMapping) {
			t.Errorf("another table's: %v", err)
		}
	})
}

func TestNewerOrEnormousStoredMappingIsRefused(t *testing.T) {
	c, _ := rig(t)
	for hash, value := range map[string][]byte{"newer": {9, 1}, "empty": {0}} {
		x := &stateCell{key: stateKey("shop", "Products"), qualifier: mappingQualifier(hash), value: value}
		if _, err := c.setIf(t.Context(), x, columnFilter(x.qualifier), false); err != nil {
			t.Fatal(err)
		}
		_, err := c.LoadMapping(t.Context(), "shop", "Products", hash)
		if newer := (*NewerFormatError)(nil); err == nil || errors.As(err, &newer) != (hash == "newer") {
			t.Errorf("%s: %v", hash, err)
		}
	}
	noise := make([]byte, maxMapping+1)
	rand.NewChaCha8([32]byte{}).Read(noise)
	if err := c.StoreMapping(t.Context(), "shop", "Products", "enormous", noise); err == nil {
		t.Error("a mapping larger than a cell should be was kept")
	}
}
