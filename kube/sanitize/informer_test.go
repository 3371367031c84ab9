// SPDX-License-Identifier: Apache-2.0

package sanitize_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/unreadable"
)

// poison is a spec that the CRD of its kind accepted once, and what the program
// says of it.
var poison = []struct{ kind, spec, says string }{
	{"NodePool", `{"disruption":{"budgets":[{"nodes":"10%"},{"nodes":"1","schedule":"@daily","duration":"99999999h"}]}}`, `spec.disruption.budgets[1].duration: "99999999h" cannot be read`},
	{"NodePool", `{"disruption":{"consolidateAfter":"99999999h"}}`, `spec.disruption.consolidateAfter: "99999999h" cannot be read`},
	{"NodePool", `{"template":{"spec":{"expireAfter":"2562048h"}}}`, `spec.template.spec.expireAfter: "2562048h" cannot be read`},
	{"NodePool", `{"template":{"spec":{"terminationGracePeriod":"99999999999999999999s"}}}`, "spec.template.spec.terminationGracePeriod"},
	{"NodePool", `{"limits":{"cpu":"1e-999999999"}}`, `spec.limits[cpu]: number "1e-999999999" has an exponent of more than 3 digits`},
	{"NodePool", `{"limits":{"cpu":"1E999999999","memory":"1e5.5"}}`, "spec.limits[memory]"},
	{"NodePool", `{"replicas":1e30}`, "spec.replicas"},
	{"NodeClaim", `{"expireAfter":"99999999h"}`, "spec.expireAfter"},
	{"NodeClaim", `{"terminationGracePeriod":"99999999h"}`, "spec.terminationGracePeriod"},
	{"NodeClaim", `{"resources":{"requests":{"cpu":"1e-999999999"}}}`, "spec.resources.requests[cpu]"},
	{"NodeClaim", `{"taints":[{"key":"a","effect":"NoSchedule","timeAdded":"2024-01-01T00:00:00"}]}`, "spec.taints[0].timeAdded"},
	{"NodeOverlay", `{"capacity":{"example.com/x":"1e-999999999"}}`, "spec.capacity[example.com/x]"},
	{"NodeOverlay", `{"weight":99999999999}`, "spec.weight"},
	{"CapacityBuffer", `{"limits":{"cpu":"1e-999999999"}}`, "spec.limits[cpu]"},
	{"CapacityBuffer", `{"limits":{"cpu":"` + strings.Repeat("9", 200) + `"}}`, "is longer than 128 characters"},
	{"CapacityBuffer", `{"replicas":99999999999}`, "spec.replicas"},
	{"CapacityBuffer", `{"percentage":1e18}`, "spec.percentage"},
	{"EC2NodeClass", `{"blockDeviceMappings":[{"ebs":{"volumeSize":"1e-999999999"}}]}`, "spec.blockDeviceMappings[0].ebs.volumeSize"},
	{"EC2NodeClass", `{"metadataOptions":{"httpPutResponseHopLimit":"no number"}}`, "spec.metadataOptions.httpPutResponseHopLimit"},
	{"KWOKNodeClass", `{"nodeRegistrationDelay":"99999999h"}`, "spec.nodeRegistrationDelay"},
	{"KWOKNodeClass", `"no object"`, `spec: want an object, have "no object"`},
}

// patience bounds what takes milliseconds unless it never ends.
const patience = 30 * time.Second

// TestInformersSurvivePoison lists and watches objects that cannot be decoded:
// they are marked, and all others are seen, before and after them.
func TestInformersSurvivePoison(t *testing.T) {
	for _, noStream := range []bool{false, true} {
		t.Run(fmt.Sprintf("listed without a watch=%v", noStream), func(t *testing.T) {
			objects, all := kinds(t)
			s := &apiServer{noStream: noStream}
			config := s.serve(t)
			listed := len(poison) / 2
			put := func(from, to int) {
				for i := from; i < to; i++ {
					s.put(named(t, all, poison[i].kind), fmt.Sprintf("poison-%d", i), poison[i].spec, "{}")
				}
			}
			put(0, listed)
			for _, k := range all {
				s.put(k, "good", "{}", "{}")
			}
			c := informers(t, config, objects, all)
			seen := map[string]*follower{}
			for _, k := range all {
				seen[k.gvk.Kind] = follow(t, c, k)
			}
			start(t, c)
			for _, k := range all {
				seen[k.gvk.Kind].wait(t, "good")
			}
			put(listed, len(poison))
			for _, k := range all {
				s.put(k, "late", "{}", "{}")
			}
			for _, k := range all {
				if err := unreadable.Error(seen[k.gvk.Kind].wait(t, "late")); err != nil {
					t.Errorf("%s without a fault: %v", k.gvk.Kind, err)
				}
			}
			for i, p := range poison {
				o := seen[p.kind].wait(t, fmt.Sprintf("poison-%d", i))
				if err := unreadable.Error(o); err == nil || !strings.Contains(err.Error(), p.says) {
					t.Errorf("%s %s: is said to be at fault for %v; want %q", p.kind, p.spec, err, p.says)
				}
			}
		})
	}
}

func named(t testing.TB, all []kind, name string) kind {
	t.Helper()
	for _, k := range all {
		if k.gvk.Kind == name {
			return k
		}
	}
	t.Fatalf("no kind %s", name)
	return kind{}
}

// follower tells what an informer hands out.
type follower struct {
	kind    string
	objects chan client.Object
	seen    map[string]client.Object
}

// follow starts an informer for the kind.
func follow(t testing.TB, c cache.Cache, k kind) *follower {
	t.Helper()
	f := &follower{kind: k.gvk.Kind, objects: make(chan client.Object, 1000), seen: map[string]client.Object{}}
	informer, err := c.GetInformer(t.Context(), reflect.New(k.object).Interface().(client.Object), cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { f.objects <- o.(client.Object) },
		UpdateFunc: func(_, o any) { f.objects <- o.(client.Object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// start runs the informers until the test ends.
func start(t testing.TB, c cache.Cache) {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// wait returns the latest object of the name, which may still have to come.
func (f *follower) wait(t testing.TB, name string) client.Object {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for f.seen[name] == nil {
		select {
		case o := <-f.objects:
			f.seen[o.GetName()] = o
		case <-deadline.C:
			t.Fatalf("%s %s was not seen in %v", f.kind, name, patience)
		}
	}
	return f.seen[name]
}
