package source

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/tailrace-cdc/replicator/host"
)

// ErrNoIdentities means that the caller's identity is unknown, because the endpoints are not AWS's
// own and have no token service. Examples are the sandbox and DynamoDB Local.
var ErrNoIdentities = errors.New("the server knows no identities")

// Principal returns the ARN of the caller's identity, from the security token service. It needs no
// permission.
func (s *Source) Principal(ctx context.Context) (string, error) {
	base := aws.ToString(s.identities.Options().BaseEndpoint) // $AWS_ENDPOINT_URL_STS or $AWS_ENDPOINT_URL
	if base == "" && s.opt.Endpoint != "" && !host.AWS(s.opt.Endpoint) {
		return "", ErrNoIdentities // the tables are not in AWS, so its identities do not apply
	}
	once := func(o *sts.Options) { o.Retryer = s.noRetry }
	who, err := s.identities.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}, once)
	switch {
	case err == nil && aws.ToString(who.Arn) != "":
		return aws.ToString(who.Arn), nil
	case base != "" && !host.AWS(base), err == nil:
		return "", ErrNoIdentities
	default:
		return "", s.wrap(ctx, "get caller identity", err)
	}
}
