// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	coschedulingv1alpha1 "karpenter/api/coscheduling/v1alpha1"
	"karpenter/api/scheme"
	v1 "karpenter/api/v1"
	"karpenter/api/v1alpha1"
	"karpenter/kube/optional"
)

// refusing is an API server that serves NodePools, does not know PodGroups, and refuses
// NodeOverlays until the test changes that.
type refusing struct{ allowed atomic.Bool }

// ServeHTTP implements http.Handler.
func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, resource, _ := strings.Cut(r.URL.Path, "/karpenter.sh/")
	query := r.URL.Query()
	switch {
	case resource == "":
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	case resource == "v1alpha1/nodeoverlays" && !s.allowed.Load():
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	case query.Has("sendInitialEvents"):
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid) // lists only
	case query.Has("watch"):
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case resource == "v1/nodepools":
		answer(w, http.StatusOK, `{"kind":"NodePoolList","apiVersion":"karpenter.sh/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
	default:
		answer(w, http.StatusOK, `{"kind":"NodeOverlayList","apiVersion":"karpenter.sh/v1alpha1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}}]}`)
	}
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	text, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason, Code: code, Message: string(reason),
	})
	if err != nil {
		panic(err)
	}
	answer(w, int(code), string(text))
}

func answer(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(text))
}

// TestOptionalKinds covers kinds that an API server does not serve or refuses: the cache
// is in sync without them, reading them is an error, and only a kind that is rejected is
// reported. A kind that is allowed later is read then.
func TestOptionalKinds(t *testing.T) {
	s := &refusing{}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	objects := runtime.NewScheme()
	if err := scheme.AddToScheme(objects); err != nil {
		t.Fatal(err)
	}
	group, overlay := &coschedulingv1alpha1.CoschedulingPodGroup{}, &v1alpha1.NodeOverlay{}
	watches := NewWatches(prometheus.NewRegistry(), clock.RealClock{}, group, overlay)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(v1.GroupVersion().WithKind("NodePool"), meta.RESTScopeRoot)
	c, err := optional.NewCache(watches.optional, watches.Unread)(&rest.Config{Host: server.URL}, cache.Options{
		HTTPClient: server.Client(), Scheme: objects, Mapper: mapper, NewInformer: watches.informer,
		ByObject: map[client.Object]cache.ByObject{&v1.NodePool{}: {}, overlay: {Transform: cache.TransformStripManagedFields()}, group: {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	becomes := func(what string, list client.ObjectList, want error) {
		t.Helper()
		var last error
		err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			last = c.List(ctx, list)
			return errors.Is(last, want), nil
		})
		if err != nil {
			t.Fatalf("%s: %v", what, last)
		}
	}
	overlays := &v1alpha1.NodeOverlayList{}
	becomes("required", &v1.NodePoolList{}, nil)
	becomes("refused", overlays, optional.ErrUnread)
	becomes("not served", &coschedulingv1alpha1.CoschedulingPodGroupList{}, optional.ErrUnread)
	if !c.WaitForCacheSync(ctx) {
		t.Error("not in sync")
	}
	var refused []Down
	for _, d := range watches.Down() {
		if d.Optional {
			refused = append(refused, d)
		}
	}
	if len(refused) != 1 || refused[0].Kind != "NodeOverlay" || !refused[0].Refused {
		t.Errorf("reported: %+v", refused)
	}

	s.allowed.Store(true)
	becomes("allowed", overlays, nil)
	if len(overlays.Items) != 1 {
		t.Errorf("allowed: %d overlays", len(overlays.Items))
	}
}
