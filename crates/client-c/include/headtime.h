/* Guaranteed streams and background tasks of a running Headtime service.
 *
 *   headtime_text problem = { text, sizeof text };
 *   headtime_client *client = headtime_connect(NULL, problem);
 *   struct headtime_terms terms = { .rate = 1000000, .buffer = 131072 };
 *   headtime_stream *stream = headtime_attach_file(client, fd, &terms, problem);
 *   while ((count = pread(fd, bytes, 65536, at)) > 0)
 *       headtime_position(stream, at += count);
 *   headtime_close(stream);
 *   headtime_disconnect(client);
 *
 * While the playout point moves at the rate or slower, reads up to the buffer beyond it come from the
 * service's memory. The connection is the lease: when the process ends, however, so do its streams.
 * Open files with O_DIRECT: what the kernel has cached does not concern the service.
 *
 * All functions may be called from any thread; a stream by one thread at a time while it is closed.
 */
#ifndef HEADTIME_H
#define HEADTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct headtime_client headtime_client;
typedef struct headtime_stream headtime_stream;

/* What a stream is for. */
enum headtime_mode {
    HEADTIME_PLAY = 0,
    /* Written sequentially, in whole pages; a write ends when the buffer has it. */
    HEADTIME_RECORD = 1,
    /* A write ends when it is on the media. */
    HEADTIME_RECORD_SYNC = 2
};

/* What is asked for. Zeroes where nothing else is said. */
struct headtime_terms {
    /* What it is called in lists, and by the service's rules; may be null. */
    const char *name;
    /* enum headtime_mode */
    int mode;
    /* Bytes in a second. */
    uint64_t rate;
    /* How far beyond the playout point is read or written, in bytes; at least one read or write. */
    uint64_t buffer;
    /* Memory that it may take in the service, in bytes; 0: as much as it takes. */
    uint64_t memory;
    /* The first byte that is wanted. */
    uint64_t start;
    /* The export whose volume the file system is on, where the kernel does not know it (it does for
     * a loop device over the service's FUSE file); may be null. */
    const char *export_name;
};

/* A range of a file that lies in one piece on the volume, in bytes. */
struct headtime_piece {
    uint64_t offset;
    uint64_t start;
    uint64_t length;
};

/* What happens to a stream. */
enum headtime_event_kind {
    /* The guarantee holds from now on. */
    HEADTIME_SERVING = 1,
    /* The application has left the buffer, or the file was changed under it: it fills again. */
    HEADTIME_LAPSED = 2,
    /* A recording was faster than its rate. */
    HEADTIME_BEHIND = 3,
    /* A batch came too late, by so many microseconds (`from`). For so many (`to`) earlier requests over
     * the same blocks held it up, which the guarantee does not cover. */
    HEADTIME_LATE = 4,
    /* What was written from `from` to `to` is not on the media. */
    HEADTIME_WRITE_FAILED = 5,
    /* Where the file is now the stream would not have been granted: it goes on at best effort. */
    HEADTIME_UNGUARANTEED = 6,
    /* A read or write was served as any other. */
    HEADTIME_ASIDE = 7,
    /* There is no such stream any more. */
    HEADTIME_ENDED = 8
};

struct headtime_event {
    int kind;
    uint64_t from;
    uint64_t to;
};

/* Where a message goes: `size` bytes at `at`, of which the last is zero; nothing if `at` is null. */
typedef struct headtime_text {
    char *at;
    size_t size;
} headtime_text;

/* Connects to the control socket at `path`, or at the default path if that is null. Null if nobody
 * listens there. */
headtime_client *headtime_connect(const char *path, headtime_text problem);

/* Ends a connection, and with it its streams, which are still to be closed. Null is fine. */
void headtime_disconnect(headtime_client *client);

/* A stream on an open file of a file system over a volume. Null if it is refused: `problem` says why,
 * and what would be granted. */
headtime_stream *headtime_attach_file(const headtime_client *client, int fd,
                                      const struct headtime_terms *terms, headtime_text problem);

/* A stream on `count` pieces of a file of `length` bytes, in the volume of `terms->export_name`. */
headtime_stream *headtime_attach_pieces(const headtime_client *client,
                                        const struct headtime_piece *pieces, size_t count,
                                        uint64_t length, const struct headtime_terms *terms,
                                        headtime_text problem);

/* The same two, with a best-effort priority of the file, from 0, the highest, to 6: its buffer fills
 * at it, and what anybody reads and writes of it is served at it, until the stream ends. With a rate and
 * a buffer of 0 nothing is guaranteed, and the priority is all. (They are functions of their own, so
 * that the terms stay as long as they were for programs that are compiled already.) */
headtime_stream *headtime_attach_file_with_priority(const headtime_client *client, int fd,
                                                    const struct headtime_terms *terms,
                                                    int priority, headtime_text problem);
headtime_stream *headtime_attach_pieces_with_priority(const headtime_client *client,
                                                      const struct headtime_piece *pieces,
                                                      size_t count, uint64_t length,
                                                      const struct headtime_terms *terms,
                                                      int priority, headtime_text problem);

/* The playout point is at `offset` of the file. 0, or -1 if the service has gone. */
int headtime_position(const headtime_stream *stream, uint64_t offset);

/* The file may have grown or moved. 0 if it is where it was, 1 if not, -1 if that failed. */
int headtime_refresh(const headtime_stream *stream, int fd, headtime_text problem);

/* The next event, waited for up to `milliseconds`. 1 if there was one, else 0. */
int headtime_next_event(const headtime_stream *stream, uint32_t milliseconds,
                        struct headtime_event *event, headtime_text reason);

/* Ends a stream; what it recorded is still written. Null is fine. */
void headtime_close(headtime_stream *stream);

/* A range of a volume, in bytes: multiples of the drive's blocks. */
struct headtime_range {
    uint64_t start;
    uint64_t length;
};

/* A declared set of a volume's bytes, to be read in gaps and idle time, in any order. */
struct headtime_order {
    const char *volume;
    /* `count` pieces that do not overlap, in any order: at most 16000. */
    const struct headtime_range *pieces;
    size_t count;
    /* Any so many of the pieces will do; 0: all are needed. */
    uint64_t any;
    /* Seconds until the task should be done; 0: no deadline. */
    uint64_t deadline_seconds;
    /* The most bytes a second that the task takes; 0: no limit. */
    uint64_t pace;
    /* Among tasks; 0 is the highest. */
    int priority;
    /* A program that the service runs, its arguments, and a null at the end. For each portion its standard
     * input has a line with the first byte in the volume and the length, and then the bytes. Null: a
     * checksum of the set is all that is wanted, or `into` is a file. */
    const char *const *command;
    /* The whole path of a file that receives the bytes instead; null: none. It has the pieces one behind the
     * other in the order of this order, up to 7 bytes up to a multiple of 8, and a bit for each block of the
     * drive that has come, the least significant one first. A block is there before its bit. A file in
     * /dev/shm is a buffer to be mapped; it may be empty, or as long as that. */
    const char *into;
};

enum headtime_task_state {
    HEADTIME_TASK_ACTIVE = 1,
    HEADTIME_TASK_SUSPENDED = 2,
    HEADTIME_TASK_FINISHED = 3,
    HEADTIME_TASK_ABORTED = 4
};

/* The progress of a task, in bytes. */
struct headtime_task {
    /* enum headtime_task_state */
    int state;
    uint64_t asked;
    uint64_t done;
    /* What of `done` was read in gaps of the foreground, in idle time, and in granted time. */
    uint64_t free;
    uint64_t idle;
    uint64_t paid;
    /* Could not be read. */
    uint64_t failed;
    uint64_t pieces_needed;
    uint64_t pieces_done;
    /* At the present rate; below 0 if it is unknown. */
    double seconds_left;
};

enum headtime_steer {
    /* The drive reads nothing for the task until it is resumed. */
    HEADTIME_SUSPEND = 1,
    HEADTIME_RESUME = 2,
    /* The task ends unfinished. */
    HEADTIME_ABORT = 3,
    /* The task gets `priority`. */
    HEADTIME_PROMOTE = 4,
    /* A client waits for the task: its reads take turns with the foreground. */
    HEADTIME_HASTEN = 5
};

/* Begins a task, which does not end with the connection. Its number, or 0 if it is refused. */
uint64_t headtime_begin_task(const headtime_client *client, const struct headtime_order *order,
                             headtime_text problem);

/* The progress of a task; `outcome` has its result once it has ended, or the error of its program. 1 if there
 * is one, 0 if not, -1 if the service has gone. */
int headtime_task(const headtime_client *client, uint64_t number, struct headtime_task *task,
                  headtime_text outcome);

/* Steers a task. `priority` counts for HEADTIME_PROMOTE only. 0, or -1 if no such task is under way. */
int headtime_steer_task(const headtime_client *client, uint64_t number, int steer, int priority,
                        headtime_text problem);

#ifdef __cplusplus
}
#endif

#endif
