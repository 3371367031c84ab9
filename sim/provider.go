// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"math/rand/v2"

	v1 "karpenter/api/v1"
	"karpenter/cloud"
)

// provider is the cloud as a process sees it: its calls wait at the gate.
type provider struct {
	cloud.Provider
	gate *gate
	rand *rand.Rand // of what is left out of answers
}

// ask makes a call that has an answer.
func ask[T any](ctx context.Context, p *provider, method, name string, do func(context.Context, float64) (T, error)) (T, error) {
	var out T
	err := p.gate.pass(ctx, request{
		Call:   Call{Target: Cloud, By: controllerOf(ctx), Verb: method, Name: name},
		writes: method == "Create" || method == "Delete",
		detail: func() string { return "" },
		carry: func(leave float64) (err error) {
			out, err = do(context.WithoutCancel(ctx), leave)
			return err
		},
		stray: func() func() error {
			return func() error {
				_, err := do(context.WithoutCancel(ctx), 0)
				return err
			}
		},
	})
	if err != nil {
		var none T
		return none, err
	}
	return out, nil
}

// Create implements cloud.Provider.
func (p *provider) Create(ctx context.Context, claim *v1.NodeClaim) (*cloud.Machine, error) {
	claim = claim.DeepCopy()
	return ask(ctx, p, "Create", claim.Name, func(ctx context.Context, _ float64) (*cloud.Machine, error) {
		return p.Provider.Create(ctx, claim)
	})
}

// Delete implements cloud.Provider.
func (p *provider) Delete(ctx context.Context, claim *v1.NodeClaim) error {
	claim = claim.DeepCopy()
	_, err := ask(ctx, p, "Delete", claim.Name, func(ctx context.Context, _ float64) (struct{}, error) {
		return struct{}{}, p.Provider.Delete(ctx, claim)
	})
	return err
}

// Get implements cloud.Provider.
func (p *provider) Get(ctx context.Context, providerID string) (*cloud.Machine, error) {
	return ask(ctx, p, "Get", providerID, func(ctx context.Context, _ float64) (*cloud.Machine, error) {
		return p.Provider.Get(ctx, providerID)
	})
}

// List implements cloud.Provider.
func (p *provider) List(ctx context.Context) ([]*cloud.Machine, error) {
	return ask(ctx, p, "List", "", func(ctx context.Context, leave float64) ([]*cloud.Machine, error) {
		out, err := p.Provider.List(ctx)
		return leaveOut(p.rand, out, leave), err
	})
}

// InstanceTypes implements cloud.Provider.
func (p *provider) InstanceTypes(ctx context.Context, pool *v1.NodePool) ([]*cloud.InstanceType, error) {
	return ask(ctx, p, "InstanceTypes", pool.Name, func(ctx context.Context, leave float64) ([]*cloud.InstanceType, error) {
		out, err := p.Provider.InstanceTypes(ctx, pool)
		return leaveOut(p.rand, out, leave), err
	})
}

// IsDrifted implements cloud.Provider.
func (p *provider) IsDrifted(ctx context.Context, claim *v1.NodeClaim) (string, error) {
	claim = claim.DeepCopy()
	return ask(ctx, p, "IsDrifted", claim.Name, func(ctx context.Context, _ float64) (string, error) {
		return p.Provider.IsDrifted(ctx, claim)
	})
}

// leaveOut returns the answer without a share of it.
func leaveOut[T any](r *rand.Rand, answer []T, share float64) []T {
	if share <= 0 {
		return answer
	}
	var out []T
	for _, x := range answer {
		if r.Float64() >= share {
			out = append(out, x)
		}
	}
	return out
}
