// SPDX-License-Identifier: Apache-2.0

package awsfake

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"
)

// ssmAPI is Systems Manager.
type ssmAPI struct{ a *AWS }

type parameter struct {
	value   string
	version int64
	at      time.Time
}

// SetParameter sets an SSM parameter; an empty value removes it.
func (a *AWS) SetParameter(name, value string) {
	a.locked(func(now time.Time) { a.setParameter(name, value, now) })
}

func (a *AWS) setParameter(name, value string, at time.Time) {
	if value == "" {
		delete(a.parameters, name)
		return
	}
	a.parameters[name] = parameter{value, a.parameters[name].version + 1, at}
}

// GetParameter returns a parameter by name or ARN.
func (s ssmAPI) GetParameter(ctx context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options)) (*ssm.GetParameterOutput, error) {
	return answer(ctx, s.a, "GetParameter", in, func(time.Time) (*ssm.GetParameterOutput, error) {
		name := aws.ToString(in.Name)
		if _, path, ok := strings.Cut(name, ":parameter/"); ok && strings.HasPrefix(name, "arn:") {
			name = path
			if _, ok := s.a.parameters[name]; !ok {
				name = "/" + path
			}
		}
		p, ok := s.a.parameters[name]
		if !ok {
			return nil, &types.ParameterNotFound{Message: aws.String("Parameter " + name + " not found.")}
		}
		account := s.a.config.Account
		if strings.HasPrefix(name, "/aws/service/") {
			account = ""
		}
		return &ssm.GetParameterOutput{Parameter: &types.Parameter{
			Name: &name, Value: &p.value, Version: p.version, LastModifiedDate: &p.at, Type: types.ParameterTypeString, DataType: aws.String("text"),
			ARN: aws.String("arn:aws:ssm:" + s.a.config.Region + ":" + account + ":parameter/" + strings.TrimPrefix(name, "/")),
		}}, nil
	})
}
