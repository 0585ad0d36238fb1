package source

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// itemKey decodes a primary key, which has only strings, numbers and binaries.
func itemKey(raw []byte) (map[string]types.AttributeValue, error) {
	var attrs map[string]map[string]string
	if err := json.Unmarshal(raw, &attrs); err != nil {
		return nil, fmt.Errorf("read key: %w", err)
	}
	if len(attrs) == 0 {
		return nil, errors.New("read key: no attribute")
	}
	key := make(map[string]types.AttributeValue, len(attrs))
	for name, typed := range attrs {
		for kind, text := range typed {
			switch kind {
			case "S":
				key[name] = &types.AttributeValueMemberS{Value: text}
			case "N":
				key[name] = &types.AttributeValueMemberN{Value: text}
			case "B":
				b, err := base64.StdEncoding.DecodeString(text)
				if err != nil {
					return nil, fmt.Errorf("read key: %w", err)
				}
				key[name] = &types.AttributeValueMemberB{Value: b}
			default:
				return nil, fmt.Errorf("read key: attribute %q has type %s, not S, N or B", name, kind)
			}
		}
	}
	return key, nil
}
