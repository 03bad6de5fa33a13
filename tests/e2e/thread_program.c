// What cpu_test.py records: threads that spin, work, wait for each other or sleep, for so many seconds.
//   thread_program spin|work|turns|sleep SECONDS THREADS
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int over;
static volatile double sink;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn, threads = 1;

__attribute__((noinline)) void compute(void) {
  for (int i = 0; i < 20000; ++i) sink += i * 0.5;
}

__attribute__((noinline)) void spin_for_work(void) {
  while (!over) sched_yield();
}

__attribute__((noinline)) void take_turns(int own) {
  while (!over) {
    pthread_mutex_lock(&mutex);
    while (turn != own && !over) pthread_cond_wait(&changed, &mutex);
    compute();
    turn = (turn + 1) % threads;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
  }
}

static const char* mode;
static void* thread_main(void* argument) {
  const int own = (int)(long)argument;
  if (strcmp(mode, "spin") == 0) spin_for_work();
  if (strcmp(mode, "turns") == 0) take_turns(own);
  while (!over && strcmp(mode, "work") == 0) compute();
  while (!over && strcmp(mode, "sleep") == 0) usleep(10000);
  return NULL;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int main(int count, char** words) {
  if (count != 4) return 2;
  mode = words[1];
  threads = atoi(words[3]);
  const double until = now() + atof(words[2]);
  pthread_t* all = calloc((size_t)threads, sizeof *all);
  for (long i = 1; i < threads; ++i) pthread_create(&all[i], NULL, thread_main, (void*)i);
  while (now() < until) {
    if (strcmp(mode, "sleep") == 0) {
      usleep(100000);
    } else if (strcmp(mode, "turns") == 0) {
      pthread_mutex_lock(&mutex);
      if (turn == 0) turn = 1 % threads;
      pthread_cond_broadcast(&changed);
      pthread_mutex_unlock(&mutex);
      compute();
    } else {
      compute();
    }
  }
  over = 1;
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
  for (int i = 1; i < threads; ++i) pthread_join(all[i], NULL);
  free(all);
  return 0;
}
