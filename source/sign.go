package source

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	signer "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Signer returns a function that signs requests to DynamoDB with the credentials of this source, for
// its region. hash is the SHA-256 of the body in hex. The function sets the fields Authorization,
// X-Amz-Date and, for temporary credentials, X-Amz-Security-Token. It is safe for concurrent use.
func (s *Source) Signer() func(ctx context.Context, r *http.Request, hash string) error {
	o := s.tables.Options()
	v4 := signer.NewSigner()
	return func(ctx context.Context, r *http.Request, hash string) error {
		credentials, err := o.Credentials.Retrieve(ctx)
		if err != nil {
			return wrap(ctx, "sign a request", err)
		}
		return v4.SignHTTP(ctx, credentials, r, hash, "dynamodb", o.Region, time.Now())
	}
}

// Reached returns the name that AWS gives DynamoDB in the region of the source, such as
// dynamodb.eu-west-1.amazonaws.com, and the endpoint that the source uses instead, from its options
// or the environment; "" where there is none.
func (s *Source) Reached(ctx context.Context) (name, endpoint string) {
	o := s.tables.Options()
	own := "dynamodb." + o.Region
	of := dynamodb.EndpointParameters{Region: &o.Region}
	found, err := dynamodb.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, of)
	if err == nil && strings.HasPrefix(found.URI.Host, own+".") { // that of region "local" is localhost
		return found.URI.Host, aws.ToString(o.BaseEndpoint)
	}
	return own + ".amazonaws.com", aws.ToString(o.BaseEndpoint)
}
