// SPDX-License-Identifier: Apache-2.0

package sanitize_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karpenter/api/scheme"
	"karpenter/kube/sanitize"
)

// kind is one of ours.
type kind struct {
	gvk      schema.GroupVersionKind
	resource string
	scope    meta.RESTScope
	object   reflect.Type
}

// kinds returns all of ours, and those of others that we have Go types for, in order.
func kinds(t testing.TB) (*runtime.Scheme, []kind) {
	t.Helper()
	objects := runtime.NewScheme()
	if err := scheme.AddToScheme(objects); err != nil {
		t.Fatal(err)
	}
	var out []kind
	for gvk, typ := range objects.AllKnownTypes() {
		if _, ok := reflect.New(typ).Interface().(client.Object); !ok || gvk.Version == runtime.APIVersionInternal {
			continue // a list, or options of a request
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		scope := meta.RESTScopeRoot
		if slices.Contains([]string{"CapacityBuffer", "ProvisioningRequest", "PodGroup"}, gvk.Kind) {
			scope = meta.RESTScopeNamespace
		}
		out = append(out, kind{gvk: gvk, resource: plural.Resource, scope: scope, object: typ})
	}
	slices.SortFunc(out, func(a, b kind) int { return strings.Compare(a.gvk.String(), b.gvk.String()) })
	if len(out) < 9 {
		t.Fatalf("%d kinds only: %v", len(out), out)
	}
	return objects, out
}

// apiServer is as much of an API server as informers need. It stores JSON
// without looking at it.
type apiServer struct {
	mu       sync.Mutex
	version  int
	objects  map[string]map[string]json.RawMessage // by resource and name
	kinds    map[string]string                     // by resource
	history  []change
	watchers map[chan json.RawMessage]string // by what they watch
	noStream bool                            // refuse lists in the form of watches
}

// historyLength is how many changes a watch can begin after.
const historyLength = 1000

// change is an event of a resource.
type change struct {
	version  int
	resource string
	frame    json.RawMessage
}

// serve starts the server and returns how to reach it.
func (s *apiServer) serve(t testing.TB) *rest.Config {
	t.Helper()
	s.objects, s.watchers = map[string]map[string]json.RawMessage{}, map[chan json.RawMessage]string{}
	s.kinds = map[string]string{}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL, QPS: -1}
}

// put stores an object, given as its spec and its status in JSON, and tells the
// watchers of it. It returns the version of the object.
func (s *apiServer) put(k kind, name, spec, status string) (version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	raw := json.RawMessage(fmt.Sprintf(
		`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"namespace":"default","uid":"u-%s","resourceVersion":"%d"},"spec":%s,"status":%s}`,
		k.gvk.GroupVersion(), k.gvk.Kind, name, name, s.version, spec, status))
	s.kinds[k.resource] = k.gvk.Kind
	if s.objects[k.resource] == nil {
		s.objects[k.resource] = map[string]json.RawMessage{}
	}
	event := "MODIFIED"
	if s.objects[k.resource][name] == nil {
		event = "ADDED"
	}
	s.objects[k.resource][name] = raw
	if len(s.history) == historyLength {
		s.history = slices.Clone(s.history[historyLength/2:])
	}
	s.history = append(s.history, change{s.version, k.resource, frame(event, raw)})
	for w, resource := range s.watchers {
		if resource == k.resource {
			w <- frame(event, raw)
		}
	}
	return strconv.Itoa(s.version)
}

func frame(event string, object json.RawMessage) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type":%q,"object":%s}`, event, object))
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/") // apis, group, version, resource
	if len(parts) != 4 {
		http.NotFound(w, r)
		return
	}
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("watch") == "":
		s.list(w, parts)
	case s.noStream && query.Get("sendInitialEvents") != "":
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
	default:
		s.watch(w, r, parts)
	}
}

func (s *apiServer) list(w http.ResponseWriter, parts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []json.RawMessage{}
	for _, o := range s.objects[parts[3]] {
		items = append(items, o)
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": parts[1] + "/" + parts[2], "kind": s.kinds[parts[3]] + "List",
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(s.version)}, "items": items,
	})
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, parts []string) {
	events := make(chan json.RawMessage, 1000)
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range s.objects[parts[3]] {
			events <- frame("ADDED", o)
		}
		events <- frame("BOOKMARK", json.RawMessage(fmt.Sprintf(
			`{"apiVersion":"%s/%s","kind":%q,"metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}`, parts[1], parts[2], s.kinds[parts[3]], s.version)))
	} else {
		since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion")) // "" = all of it
		for _, c := range s.history {
			if c.version > since && c.resource == parts[3] {
				events <- c.frame
			}
		}
	}
	s.watchers[events] = parts[3]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, events)
	}()
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-events:
			_, _ = w.Write(append(e, '\n'))
			w.(http.Flusher).Flush()
		}
	}
}

// informers returns the cache that the controllers use.
func informers(t testing.TB, config *rest.Config, objects *runtime.Scheme, all []kind) cache.Cache {
	t.Helper()
	wrap, err := sanitize.Wrap()
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(wrap)
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, k := range all {
		mapper.Add(k.gvk, k.scope)
	}
	c, err := cache.New(config, cache.Options{Scheme: objects, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
