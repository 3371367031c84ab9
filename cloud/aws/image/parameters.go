// SPDX-License-Identifier: Apache-2.0

package image

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"karpenter/cloud/aws/client"
)

const (
	publishedTTL = 24 * time.Hour  // of parameters of AWS's
	ownTTL       = 5 * time.Minute // of users'
)

// parameters caches the values of SSM parameters. It is safe for concurrent
// use.
type parameters struct {
	ssm   client.SSM
	clock clock.PassiveClock

	asking singleflight.Group
	mu     sync.Mutex
	known  map[string]value
}

type value struct {
	text    string
	mutable bool
	until   time.Time
}

// get returns the value of a parameter, "" when there is no such parameter.
func (p *parameters) get(ctx context.Context, name string, ttl time.Duration, mutable bool) (string, error) {
	if v, ok := p.lookup(name); ok {
		return v, nil
	}
	answer, err, _ := p.asking.Do(name, func() (any, error) {
		out, err := p.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
		if client.NotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", fmt.Errorf("SSM parameter %s: %w", name, err)
		}
		if out.Parameter == nil {
			return "", nil
		}
		text := aws.ToString(out.Parameter.Value)
		p.keep(name, value{text, mutable, p.clock.Now().Add(ttl)})
		return text, nil
	})
	text, _ := answer.(string)
	return text, err
}

func (p *parameters) lookup(name string) (string, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v, ok := p.known[name]
	return v.text, ok && v.until.After(p.clock.Now())
}

func (p *parameters) keep(name string, v value) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]value{}
	}
	p.known[name] = v
}

// mutable returns the values of parameters that can change, sorted, and drops
// all that have expired.
func (p *parameters) mutable() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	var out []string
	for name, v := range p.known {
		switch {
		case !v.until.After(now):
			delete(p.known, name)
		case v.mutable:
			out = append(out, v.text)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// drop forgets the parameters that may change and have one of the values, and
// returns their names, sorted.
func (p *parameters) drop(values []string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for name, v := range p.known {
		if v.mutable && slices.Contains(values, v.text) {
			delete(p.known, name)
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
