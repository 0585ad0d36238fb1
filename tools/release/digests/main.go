// Command digests writes docker-compose.yml with the digest of each image behind its tag, so that
// what is started is what was there at the release. Where no registry can be reached it says so,
// and the tags stay.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"regexp"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// patience is how long all registries together may take.
const patience = 30 * time.Second

func main() {
	log.SetFlags(0)
	log.SetPrefix("digests: ")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

// run writes the file that the arguments name.
func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("digests", flag.ContinueOnError)
	in := flags.String("in", "docker-compose.yml", "file with the tags")
	out := flags.String("out", "", "file to write")
	registry := flags.String("registry", "", "registry of the images without one in their name; \"\": the usual one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	text, err := os.ReadFile(*in)
	if err != nil {
		return err
	}
	filled, err := fill(ctx, string(text), *registry)
	if err != nil {
		return err
	}
	return os.WriteFile(*out, []byte(filled), 0o644) //nolint:gosec // everybody may read it
}

// tagged is the line of an image with a tag and without a digest.
var tagged = regexp.MustCompile(`(?m)^(\s+image: )([^\s:@]+(?::[0-9]+/[^\s:@]+)?:[^\s@]+)$`)

// fill returns the text with a digest behind each tag. An image that its registry does not have is
// an error.
func fill(ctx context.Context, text, registry string) (string, error) {
	var wrong error
	var filled, left int
	text = tagged.ReplaceAllStringFunc(text, func(line string) string {
		parts := tagged.FindStringSubmatch(line)
		if wrong != nil {
			return line
		}
		if left > 0 && filled == 0 {
			left++
			return line // one time-out is enough
		}
		digest, err := digestOf(ctx, parts[2], registry)
		switch {
		case err != nil && missing(err):
			wrong = fmt.Errorf("look for the image %s: %w", parts[2], err)
		case err != nil:
			left++
			log.Printf("%s keeps its tag: %v", parts[2], err)
		default:
			filled++
			return parts[1] + parts[2] + "@" + digest
		}
		return line
	})
	if wrong != nil {
		return "", wrong
	}
	if left > 0 {
		log.Printf("NOT PINNED: %d of %d images have a tag only, because their registry cannot be reached from here; "+
			"run this again where it can", left, left+filled)
	}
	return text, nil
}

// digestOf asks the registry of an image for its digest: that of the index, where there is one for
// several processors.
func digestOf(ctx context.Context, image, registry string) (string, error) {
	var options []name.Option
	if registry != "" {
		options = append(options, name.WithDefaultRegistry(registry))
	}
	ref, err := name.ParseReference(image, options...)
	if err != nil {
		return "", err
	}
	d, err := remote.Head(ref, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", err
	}
	return d.Digest.String(), nil
}

// missing reports whether a registry answered that it has no such image, or whether the name cannot
// be one.
func missing(err error) bool {
	var answer *transport.Error
	var bad *name.ErrBadName
	return errors.As(err, &bad) || errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
