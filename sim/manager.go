// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"net/http"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	crrecorder "sigs.k8s.io/controller-runtime/pkg/recorder"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/conversion"

	"karpenter/control/termination"
)

// GetHTTPClient implements manager.Manager. There is no server.
func (p *process) GetHTTPClient() *http.Client { return nil }

// GetConfig implements manager.Manager. There is no server.
func (p *process) GetConfig() *rest.Config { return &rest.Config{} }

// GetCache implements manager.Manager.
func (p *process) GetCache() cache.Cache { return p.cache }

// GetScheme implements manager.Manager.
func (p *process) GetScheme() *runtime.Scheme { return p.store.Scheme() }

// GetClient implements manager.Manager.
func (p *process) GetClient() client.Client { return p.client }

// GetFieldIndexer implements manager.Manager.
func (p *process) GetFieldIndexer() client.FieldIndexer { return p.cache }

// GetRESTMapper implements manager.Manager.
func (p *process) GetRESTMapper() meta.RESTMapper { return p.store.RESTMapper() }

// GetAPIReader implements manager.Manager.
func (p *process) GetAPIReader() client.Reader { return p.live }

// GetEventRecorderFor implements manager.Manager.
func (p *process) GetEventRecorderFor(string) record.EventRecorder { return recorder{p} }

// GetEventRecorder implements manager.Manager. It is not used.
func (p *process) GetEventRecorder(string) crrecorder.EventRecorder { return nil }

// Elected implements manager.Manager.
func (p *process) Elected() <-chan struct{} { return p.elected }

// AddMetricsServerExtraHandler implements manager.Manager. Nothing is served.
func (p *process) AddMetricsServerExtraHandler(string, http.Handler) error { return nil }

// AddHealthzCheck implements manager.Manager. Nothing is served.
func (p *process) AddHealthzCheck(string, healthz.Checker) error { return nil }

// AddReadyzCheck implements manager.Manager. Nothing is served.
func (p *process) AddReadyzCheck(string, healthz.Checker) error { return nil }

// GetWebhookServer implements manager.Manager. There is none.
func (p *process) GetWebhookServer() webhook.Server { return nil }

// GetLogger implements manager.Manager.
func (p *process) GetLogger() logr.Logger { return p.log }

// GetConverterRegistry implements manager.Manager. Nothing is converted.
func (p *process) GetConverterRegistry() conversion.Registry { return nil }

// GetControllerOptions implements manager.Manager.
func (p *process) GetControllerOptions() config.Controller {
	again := true // one process after the other registers the same names
	return config.Controller{SkipNameValidation: &again, Logger: p.log}
}

// Add implements manager.Manager. A controller's queue becomes one of ours.
func (p *process) Add(r manager.Runnable) error {
	if err := p.takeQueue(r); err != nil {
		return err
	}
	p.runnables = append(p.runnables, r)
	return nil
}

// queueMaker is what a controller makes its queue with.
type queueMaker[T comparable] = func(string, workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T]

// takeQueue has a controller make its queue with us. Controllers are of a type
// internal to controller-runtime whose fields are exported.
func (p *process) takeQueue(r manager.Runnable) error {
	value := reflect.ValueOf(r)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return nil
	}
	field := value.Elem().FieldByName("NewQueue")
	if !field.IsValid() {
		return nil
	}
	switch field.Interface().(type) {
	case queueMaker[reconcile.Request]:
		field.Set(reflect.ValueOf(makeQueue[reconcile.Request](p)))
	case queueMaker[termination.Key]:
		field.Set(reflect.ValueOf(makeQueue[termination.Key](p)))
	default:
		return fmt.Errorf("queue of %T: the simulation knows no such requests", r)
	}
	return nil
}

func makeQueue[T comparable](p *process) queueMaker[T] {
	return func(controller string, limiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
		q := newQueue(controller, limiter)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.queues = append(p.queues, q)
		return q
	}
}

// recorder takes in what the process tells users.
type recorder struct{ process *process }

// Event implements record.EventRecorder.
func (r recorder) Event(o runtime.Object, kind, reason, message string) {
	r.process.tell(o, kind, reason, message)
}

// Eventf implements record.EventRecorder.
func (r recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.process.tell(o, kind, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.process.tell(o, kind, reason, fmt.Sprintf(format, args...))
}
