// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/sim/store"
)

// processName is who writes what the process writes.
const processName = "karpenter"

// gated is the client of a process: it reads from the cache, and its writes
// wait at the gate.
type gated struct {
	client.Client // writes directly
	reader        client.Reader
	store         *store.Store
	gate          *gate
	// slow reports whether the reads of a controller from the cache wait for
	// their turn, so that the cache changes between two of them.
	slow func(controller string) bool
}

func (g *gated) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return g.read(ctx, "get", o, func() error { return g.reader.Get(ctx, key, o, options...) })
}

func (g *gated) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return g.read(ctx, "list", list, func() error { return g.reader.List(ctx, list, options...) })
}

// read reads from the cache, when the turn of the controller has come if it is
// slow.
func (g *gated) read(ctx context.Context, verb string, o runtime.Object, do func() error) error {
	by := controllerOf(ctx)
	if by == "" || !g.slow(by) {
		return do()
	}
	gvk, err := g.store.KindOf(o)
	if err != nil {
		return err
	}
	return g.gate.pass(ctx, request{
		Call:   Call{Target: fromCache, By: by, Verb: verb, Kind: gvk.Kind},
		detail: func() string { return "" },
		carry:  func(float64) error { return do() },
	})
}

func named(o client.Object) string {
	name := o.GetName()
	if name == "" {
		name = o.GetGenerateName()
	}
	if o.GetNamespace() != "" {
		return o.GetNamespace() + "/" + name
	}
	return name
}

// write makes a call that changes the object, once the gate lets it.
func (g *gated) write(ctx context.Context, verb string, o client.Object, do func(context.Context, client.Object) error) error {
	gvk, err := g.store.KindOf(o)
	if err != nil {
		return err
	}
	return g.gate.pass(ctx, request{
		Call:   Call{API, controllerOf(ctx), verb, gvk.Kind, named(o)},
		writes: true,
		detail: func() string { return text(o) },
		carry:  func(float64) error { return do(context.WithoutCancel(ctx), o) },
		stray: func() func() error {
			copied := o.DeepCopyObject().(client.Object)
			return func() error { return do(context.WithoutCancel(ctx), copied) }
		},
	})
}

// text tells objects apart.
func text(o any) string {
	out, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

func (g *gated) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	return g.write(ctx, "create", o, func(ctx context.Context, o client.Object) error { return g.Client.Create(ctx, o, options...) })
}

func (g *gated) Update(ctx context.Context, o client.Object, options ...client.UpdateOption) error {
	return g.write(ctx, "update", o, func(ctx context.Context, o client.Object) error { return g.Client.Update(ctx, o, options...) })
}

func (g *gated) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return g.write(ctx, "patch", o, func(ctx context.Context, o client.Object) error {
		return g.Client.Patch(ctx, o, patch, options...)
	})
}

func (g *gated) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	return g.write(ctx, "delete", o, func(ctx context.Context, o client.Object) error { return g.Client.Delete(ctx, o, options...) })
}

func (g *gated) Status() client.SubResourceWriter { return g.SubResource("status") }

func (g *gated) SubResource(name string) client.SubResourceClient {
	return &gatedSub{g.Client.SubResource(name), g, name}
}

// gatedSub is the client of a subresource.
type gatedSub struct {
	client.SubResourceClient
	gated *gated
	name  string
}

func (s *gatedSub) Create(ctx context.Context, o, body client.Object, options ...client.SubResourceCreateOption) error {
	verb := s.name
	if verb == "eviction" {
		verb = "evict"
	}
	return s.gated.write(ctx, verb, o, func(ctx context.Context, o client.Object) error {
		return s.SubResourceClient.Create(ctx, o, body, options...)
	})
}

func (s *gatedSub) Update(ctx context.Context, o client.Object, options ...client.SubResourceUpdateOption) error {
	return s.gated.write(ctx, "update-"+s.name, o, func(ctx context.Context, o client.Object) error {
		return s.SubResourceClient.Update(ctx, o, options...)
	})
}

func (s *gatedSub) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.gated.write(ctx, "patch-"+s.name, o, func(ctx context.Context, o client.Object) error {
		return s.SubResourceClient.Patch(ctx, o, patch, options...)
	})
}

func (s *gatedSub) Apply(ctx context.Context, applied runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
	var head struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
	body := text(applied)
	if err := json.Unmarshal([]byte(body), &head); err != nil {
		return err
	}
	do := func() error { return s.SubResourceClient.Apply(context.WithoutCancel(ctx), applied, options...) }
	return s.gated.gate.pass(ctx, request{
		Call:   Call{API, controllerOf(ctx), "apply-" + s.name, head.Kind, head.Metadata.Namespace + "/" + head.Metadata.Name},
		writes: true,
		detail: func() string { return body },
		carry:  func(float64) error { return do() },
		stray:  func() func() error { return do },
	})
}

// live is the reader of a process that does not read from the cache.
type live struct {
	reader client.Reader
	store  *store.Store
	gate   *gate
}

func (l *live) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	gvk, err := l.store.KindOf(o)
	if err != nil {
		return err
	}
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + name
	}
	return l.gate.pass(ctx, request{
		Call:   Call{API, controllerOf(ctx), "get", gvk.Kind, name},
		detail: func() string { return "" },
		carry:  func(float64) error { return l.reader.Get(context.WithoutCancel(ctx), key, o, options...) },
	})
}

func (l *live) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	gvk, err := l.store.KindOf(list)
	if err != nil {
		return err
	}
	return l.gate.pass(ctx, request{
		Call:   Call{API, controllerOf(ctx), "list", gvk.Kind, ""},
		detail: func() string { return "" },
		carry:  func(float64) error { return l.reader.List(context.WithoutCancel(ctx), list, options...) },
	})
}
