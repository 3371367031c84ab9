package explain

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"karpenter/kube/access"
	"karpenter/model"
	"karpenter/scenario"
	"karpenter/solve"
)

const situation = `
type small cpu=2 mem=8Gi zones=a,b spot=0.03 on-demand=0.1
pool general requires="zone In [a]"
node n1 pool=general type=small zone=a ct=spot used=cpu:1500m,pods:1
pods here cpu=500m
pods new cpu=2
pods shop/lost-1..2 cpu=1 select=zone=b
`

// reviewing is an API server that knows two tokens, and lets one user get
// what is below /explain.
func reviewing(t *testing.T, objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			switch o := o.(type) {
			case *authenticationv1.TokenReview:
				if o.Spec.Token == "broken" {
					return errors.New("no route to host")
				}
				o.Status.Authenticated = o.Spec.Token == "ann" || o.Spec.Token == "bob"
				o.Status.User = authenticationv1.UserInfo{Username: o.Spec.Token, Groups: []string{"people"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			case *authorizationv1.SubjectAccessReview:
				a := o.Spec.NonResourceAttributes
				if o.Spec.Groups[0] != "people" || o.Spec.Extra["k"][0] != "v" || a.Verb != "get" {
					t.Errorf("asked for %+v", o.Spec)
				}
				o.Status.Allowed = o.Spec.User == "ann" && strings.HasPrefix(a.Path, "/explain/")
			default:
				t.Errorf("a %T is created", o)
			}
			return nil
		},
	}).Build()
}

func newServer(t *testing.T, c client.Client) *Server {
	t.Helper()
	s, err := scenario.Parse(strings.NewReader(situation))
	if err != nil {
		t.Fatal(err)
	}
	leads := make(chan struct{})
	close(leads)
	return &Server{
		Access:   access.Reviewer{Client: c},
		Snapshot: func(time.Time) *model.Snapshot { return s },
		Decide:   func(s *model.Snapshot) *model.Plan { return solve.Decide(s, model.DefaultPolicy()) },
		Place:    func(s *model.Snapshot) *model.Plan { return new(solve.Planner).Place(s, model.DefaultPolicy()) },
		Policy:   model.DefaultPolicy(), Pods: c, Ready: func() bool { return true }, Elected: leads, Clock: clock.RealClock{},
	}
}

func get(s *Server, token, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	return w
}

// TestWhoMayAsk: nobody learns anything without the API server's consent.
func TestWhoMayAsk(t *testing.T) {
	for _, c := range []struct {
		name, token, path string
		code              int
		says              string
	}{
		{"no token", "", PodsPath + "default/here", 401, "the token is not valid"},
		{"nobody's token", "eve", PodsPath + "default/here", 401, "the token is not valid"},
		{"not allowed", "bob", PodsPath + "default/here", 403, "bob may not get /explain/pods/default/here: a ClusterRole with that path in nonResourceURLs allows it"},
		{"allowed pods only", "ann", SnapshotPath, 403, "ann may not get /snapshot"},
		{"no API server", "broken", PodsPath + "default/here", 500, "does not say who may ask"},
		{"allowed", "ann", PodsPath + "default/here", 200, `"outcome":"node"`},
		{"no such pod", "ann", PodsPath + "default/nobody", 404, "there is no pod nobody in namespace default"},
		{"a node", "ann", NodesPath + "n1", 200, `"fate":"stays"`},
		{"no such node", "ann", NodesPath + "n9", 404, "there is no node n9"},
		{"not allowed nodes", "bob", NodesPath + "n1", 403, "bob may not get /explain/nodes/n1"},
		{"the cluster", "ann", ClusterPath, 200, `"nodes":1,"costPerHour":0.03,"pods":4`},
		{"not allowed the cluster", "bob", ClusterPath, 403, "bob may not get /explain/cluster"},
		{"no such page", "ann", "/explain/nodes", 404, "not found"},
	} {
		w := get(newServer(t, reviewing(t)), c.token, c.path)
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s: %d %s; want %d %s", c.name, w.Code, w.Body, c.code, c.says)
		}
	}
}

// TestOnlyReads: whoever may get may still not change anything.
func TestOnlyReads(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r := httptest.NewRequest(method, SnapshotPath, nil)
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		newServer(t, reviewing(t)).Handler().ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
}

func TestNotReady(t *testing.T) {
	s := newServer(t, reviewing(t))
	s.Ready = func() bool { return false }
	if w := get(s, "ann", PodsPath+"default/here"); w.Code != 503 || !strings.Contains(w.Body.String(), "still reading") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.Elected = make(chan struct{})
	if w := get(s, "ann", PodsPath+"default/here"); w.Code != 503 || !strings.Contains(w.Body.String(), "does not lead") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAnswers(t *testing.T) {
	pod := func(name string, edit func(*corev1.Pod)) client.Object {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		edit(p)
		return p
	}
	s := newServer(t, reviewing(t,
		pod("bound", func(p *corev1.Pod) { p.Spec.NodeName = "n7" }),
		pod("done", func(p *corev1.Pod) { p.Status.Phase, p.Spec.NodeName = corev1.PodSucceeded, "n7" }),
		pod("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} }),
		pod("preempting", func(p *corev1.Pod) { p.Status.NominatedNodeName = "n8" }),
		pod("young", func(*corev1.Pod) {}),
		pod("daemon", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: corev1.PodReasonUnschedulable}}
		}),
	))
	for key, want := range map[string]string{
		"default/here":       "pod default/here (cpu=500m pods=1) is planned onto node n1, which is there\n  nodepool   general\n  nodeclaim  n1\n  type       small spot a $0.03/h\n",
		"default/new":        "pod default/new (cpu=2 pods=1) is planned onto a new node\n  nodepool   general\n  type       small spot a $0.03/h\n  requests   cpu=2 pods=1\n",
		"shop/lost-2":        "the NodePool's requirement topology.kubernetes.io/zone In [a] excludes b",
		"default/bound":      "needs no new node: it is bound to node n7",
		"default/done":       "it has ended (Succeeded)",
		"default/gated":      "scheduling gate quota",
		"default/preempting": "keeps room for it on node n8",
		"default/young":      "has not found it unschedulable yet",
		"default/daemon":     "left to others",
	} {
		w := get(s, "ann", PodsPath+key)
		var a Answer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Errorf("%s: %d %s: %v", key, w.Code, w.Body, err)
			continue
		}
		var text strings.Builder
		if err := a.Text(&text); err != nil || !strings.Contains(text.String(), want) {
			t.Errorf("%s: got\n%s\nwant\n%s", key, text.String(), want)
		}
	}
}

// TestSnapshotReplays: what the server dumps is the situation it decides on.
func TestSnapshotReplays(t *testing.T) {
	s := newServer(t, reviewing(t))
	dump := httptest.NewRecorder()
	s.dump(dump, nil)
	again, err := scenario.Read(dump.Body, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := s.Snapshot(time.Time{})
	if got, want := scenario.Text(again.Snapshot, solve.Decide(again.Snapshot, again.Policy)), scenario.Text(before, s.Decide(before)); got != want {
		t.Errorf("the dump leads to\n%s\nnot\n%s", got, want)
	}
}

// TestAsk goes through a real listener, and ends with it.
func TestAsk(t *testing.T) {
	s := newServer(t, reviewing(t))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	address := web.Listener.Addr().String()
	if body, err := Ask(t.Context(), address, "ann", PodsPath+"default/new"); err != nil || !strings.Contains(string(body), `"instanceType":"small"`) {
		t.Errorf("%s, %v", body, err)
	}
	if _, err := Ask(t.Context(), address, "eve", PodsPath+"default/new"); err == nil || err.Error() != "the controller answers 401 Unauthorized: the token is not valid in this cluster" {
		t.Errorf("error is %v", err)
	}
	s.Address = address
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Address = "127.0.0.1:0"
	cancel()
	if err := s.Start(ctx); err != nil && !strings.Contains(err.Error(), "cancel") {
		t.Errorf("error is %v", err)
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		DefaultAddress: true, "localhost:1": true, "[::1]:80": true, "127.9.9.9:1": true,
		"": false, ":8082": false, "0.0.0.0:8082": false, "10.0.0.1:80": false, "karpenter.kube-system:80": false, "127.0.0.1": false,
	} {
		if err := Loopback(address); (err == nil) != want {
			t.Errorf("Loopback(%q) = %v", address, err)
		}
	}
}
